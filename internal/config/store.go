package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Store is a shared store that keeps the state of limits: Redis or Valkey. Plugins that
// name the same server in the same way share one.
type Store struct {
	Name    string // of the native form; a plugin's is made of its address
	Mode    string // single, cluster or sentinel
	Addrs   []string
	Primary string // sentinel: the name of the primary

	Username, Password                 string
	SentinelUsername, SentinelPassword string
	DB                                 int
	TLS                                *StoreTLS // nil: none

	Prefix       string        // of every key; empty: the store's default
	Deadline     time.Duration // of a decision
	ExpiryMargin time.Duration // zero: the store's default
	Connections  int           // per primary; zero: the store's default
	// Instances is how many instances share the limits, for local_share; zero: as many as
	// the store counts.
	Instances int
}

// StoreTLS says how a store's certificate is checked and which one is shown to it.
type StoreTLS struct {
	Verify     bool
	CA         string // file of the authorities in PEM; empty: those of the system
	Cert, Key  string // files of the client's own certificate in PEM; empty: none
	ServerName string // the name in the certificate; empty: that of the address
}

// StoreDeadline is how long a decision waits for a store unless the configuration says.
const StoreDeadline = 50 * time.Millisecond

// MaxStores is how many stores there may be, those of plugins included.
const MaxStores = 100

// Same reports whether two stores are one: everything about them is equal.
func (s *Store) Same(o *Store) bool { return reflect.DeepEqual(s, o) }

// String is the store without its secrets.
func (s *Store) String() string {
	at := strings.Join(s.Addrs, ", ")
	switch s.Mode {
	case "cluster":
		at = "cluster " + at
	case "sentinel":
		at = fmt.Sprintf("%s/%d behind sentinels %s", s.Primary, s.DB, at)
	default:
		at = fmt.Sprintf("%s/%d", at, s.DB)
	}
	if s.TLS != nil {
		at += " over TLS"
	}
	return "redis " + at
}

// sameBut reports whether two stores differ in their names at most.
func (s *Store) sameBut(o *Store) bool {
	a := *s
	a.Name = o.Name
	return a.Same(o)
}
