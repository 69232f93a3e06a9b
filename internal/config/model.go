package config

import (
	"net/netip"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config/tree"
	"github.com/escapement-io/escapement/internal/policy"
)

// Config is a checked configuration: everything resolved, nothing left to look up. Both
// the native form and APISIX standalone files come out as one.
type Config struct {
	Listen         string // host:port of the gateway; empty port 0 picks a free one
	TLS            *TLS   // nil: plain HTTP
	Admin          string // host:port of the admin listener; loopback by default
	TrustedProxies []netip.Prefix
	Clock          Clock
	Consumers      Consumers
	Stores         []*Store // those that limits use
	Limits         []*Limit // every limit in force, native ones first; names are unique
	Routes         []*Route // in the order of the file
	Findings       []Finding
}

// TLS names the files of a listener's certificate.
type TLS struct{ Cert, Key string }

// Consumers says how a request's consumer is known.
type Consumers struct {
	Header  string            // believed only from Trusted peers; empty: none
	Trusted []netip.Prefix    //
	Names   []string          // every consumer known by name, sorted
	KeyAuth map[string]string // API key to consumer name
}

// Limit is one limit with everything the gateway does around the decision.
type Limit struct {
	escapement.Limit
	Store    *Store          // nil: the memory of the process
	Key      policy.Key      // what is being limited
	Bypass   []policy.Bypass // requests that skip the limit
	Rejected Rejected
	Headers  Headers
	// Count and Window hold templates where limit-count takes them from the request;
	// nil: Limit.Rate as it stands; otherwise Rate.Count is the template's default or 1,
	// and Rate.Per one second. A Window template (seconds) makes one state per window length,
	// each as ForWindow says; a Count template leaves Sync at zero.
	Count, Window *policy.Template
	// AllowDegradation passes a request whose variables give no valid count, or whose
	// store fails, instead of answering 500 (compatible mode only).
	AllowDegradation bool
	Compatible       bool // from limit-count or limit-count-advanced
	// SkipUnresolved skips the limit where its key does not resolve (rules); otherwise
	// compatible limits fall back to the client address and native ones to the empty value.
	SkipUnresolved bool
	RuleSet        string // limits of one rules list share it: all skipped means 500
}

// Rejected is what a refused client is told.
type Rejected struct {
	Code int    // 429 in the native form, 503 by limit-count's default
	Msg  string // compatible: body is {"error_msg": Msg}
}

// Headers is which header fields a limit writes.
type Headers struct {
	Style                   string // ietf, draft03, x, none; compatible limits: compat
	Limit, Remaining, Reset string // names in compat style
	RetryAfter              bool
	Jitter                  time.Duration // added to Retry-After, never subtracted
}

// Route sends matching requests, once its limits admit them, to an upstream.
type Route struct {
	ID       string
	URIs     []string // exact, or a prefix ending in *
	Hosts    []string // exact or *.suffix; empty: any
	Methods  []string // empty: any
	Priority int
	KeyAuth  *KeyAuth
	Limits   []*Limit // charged to all or to none
	Upstream *Upstream
}

// KeyAuth is APISIX's key-auth: the consumer is the one whose key the request carries.
type KeyAuth struct {
	Header, Query   string
	HideCredentials bool
}

// Upstream is where a route's requests go.
type Upstream struct {
	Balance             string           // roundrobin (weighted), chash, least_conn
	HashOn              *policy.Template // chash
	Nodes               []Node
	Scheme              string // http or https
	PassHost            string // pass, node or rewrite
	Host                string // rewrite
	Connect, Send, Read time.Duration
	Retries             int
	TLSVerify           bool
}

// Node is one server of an upstream.
type Node struct {
	Addr   string // host:port
	Weight int
}

// Finding is something the reader of a configuration should know.
type Finding = tree.Finding

// Severity tells a mistake from advice.
type Severity = tree.Severity

// The severities. One Error refuses the whole file.
const (
	Error   = tree.Error
	Warning = tree.Warning
	Dropped = tree.Dropped // not supported and left out by --ignore-unsupported
)
