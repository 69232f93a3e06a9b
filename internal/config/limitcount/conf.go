package limitcount

import (
	"errors"
	"fmt"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/escapement-io/escapement/internal/config/tree"
	"github.com/escapement-io/escapement/internal/policy"
)

// The plugins.
const (
	Basic    = "limit-count"
	Advanced = "limit-count-advanced"
)

// MaxRules is how many rules one plugin may have: a request is charged to all of them at
// once.
const MaxRules = 16

// DefaultCode is what a refused client gets unless rejected_code says otherwise.
const DefaultCode = 503

// Conf is the configuration of one plugin.
type Conf struct {
	Rules            []Rule // one unless InRules
	InRules          bool   // written as rules
	Sliding          bool
	Group            string
	RejectedCode     int
	RejectedMsg      string
	Policy           string
	Redis            *Redis // nil: policy local
	AllowDegradation bool
	ShowHeader       bool
	SyncInterval     time.Duration // zero: off, every request asks the store
	Lease            bool          // with a SyncInterval: sync_mode is lease, otherwise delayed
}

// Rule is one limit of the plugin.
type Rule struct {
	Count, Window Quantity // Window in seconds
	Key           policy.Key
	HeaderPrefix  string // of rules; empty: the number of the rule

	At    *tree.Object // where count and time_window stand
	KeyAt tree.Value   // where the key stands, or the plugin if it has none
}

// Quantity is a number, or a template that gives one for each request.
type Quantity struct {
	N        int64 // with a Template: its default, or 1
	Template *policy.Template
}

// Metadata is the plugin_metadata of a plugin: the names of its header fields.
type Metadata struct{ Limit, Remaining, Reset string }

// DefaultMetadata are the names without plugin_metadata.
func DefaultMetadata() Metadata {
	return Metadata{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
}

// maxWindow is a century in seconds.
const maxWindow = 36525 * 24 * 3600

// Read reads the configuration of a plugin; it is nil where it has mistakes, which are
// in the report then.
func Read(o *tree.Object) *Conf {
	errors := o.Report().Errors()
	c := &Conf{RejectedCode: DefaultCode, Policy: "local", ShowHeader: true}
	c.readWindowType(o)
	c.readRules(o)
	if v, ok := o.Get("group"); ok {
		c.Group, _ = v.Text()
		if c.InRules {
			v.Fail("group and rules cannot be specified at the same time", "remove one of the two")
		}
	}
	c.readAnswer(o)
	if v, ok := o.Get("allow_degradation"); ok {
		c.AllowDegradation, _ = v.Bool()
	}
	c.readPolicy(o)
	o.Done()
	if o.Report().Errors() > errors {
		return nil
	}
	return c
}

// Settings is the configuration as text: equal for two plugins that ask for the same,
// whether defaults are written or not.
func (c *Conf) Settings(o *tree.Object) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %q %d %q %s %v %v %v %v", c.Sliding, c.Group, c.RejectedCode, c.RejectedMsg, c.Policy, c.AllowDegradation, c.ShowHeader, c.SyncInterval, c.Lease)
	for _, r := range c.Rules {
		fmt.Fprintf(&b, " %v %v %v", r.Count, r.Window, r.Key)
	}
	for _, key := range redisOptions {
		if n := o.Node.Field(key); n != nil {
			fmt.Fprintf(&b, " %s=%s", key, n.Canonical())
		}
	}
	return b.String()
}

// String is the number or the template.
func (q Quantity) String() string {
	if q.Template != nil {
		return strconv.Quote(q.Template.String())
	}
	return strconv.FormatInt(q.N, 10)
}

func (c *Conf) readWindowType(o *tree.Object) {
	if v, ok := o.Get("window_type"); ok {
		s, _ := v.OneOf("fixed", "sliding")
		c.Sliding = s == "sliding"
	}
}

// readAnswer reads what the client is told.
func (c *Conf) readAnswer(o *tree.Object) {
	if v, ok := o.Get("rejected_code"); ok {
		if n, ok := v.Int(200, 599); ok {
			c.RejectedCode = int(n)
		}
	}
	if v, ok := o.Get("rejected_msg"); ok {
		c.RejectedMsg, _ = v.Text()
	}
	if v, ok := o.Get("show_limit_quota_header"); ok {
		c.ShowHeader, _ = v.Bool()
	}
}

// readRules reads count, time_window and key, or rules.
func (c *Conf) readRules(o *tree.Object) {
	rules, has := o.Get("rules")
	c.InRules = has
	if !has {
		c.Rules = []Rule{readSingle(o)}
		return
	}
	if o.Has("count") || o.Has("time_window") {
		rules.Fail("count/time_window and rules cannot be specified at the same time", "remove one of the two")
	}
	o.Skip("count", "time_window", "key", "key_type")
	items, ok := rules.Items(MaxRules)
	if ok && len(items) == 0 {
		rules.Fail("the list is empty", "write at least one rule, or count and time_window instead")
	}
	keys := map[string]bool{}
	for _, item := range items {
		r, ok := item.Object()
		if !ok {
			continue
		}
		rule := readRule(r)
		if text := r.Node.Field("key"); text != nil {
			if keys[text.Text] {
				rule.KeyAt.Fail(fmt.Sprintf("duplicate key '%s' in rules", text.Text), "give each rule its own key, such as ${remote_addr}_10s")
			}
			keys[text.Text] = true
		}
		c.Rules = append(c.Rules, rule)
	}
}

func readSingle(o *tree.Object) Rule {
	r := Rule{At: o, KeyAt: o.Value}
	r.readQuantities(o)
	kind := "var"
	if v, ok := o.Get("key_type"); ok {
		if s, ok := v.OneOf("var", "var_combination", "constant"); ok {
			kind = s
		}
	}
	text := "remote_addr"
	if v, ok := o.Get("key"); ok {
		r.KeyAt = v
		if text, ok = v.Text(); !ok {
			return r
		}
	} else if kind != "var" {
		o.Fail("key is missing", "write the text that key_type: "+kind+" means")
		return r
	}
	switch kind {
	case "constant":
		r.Key = policy.Key{Parts: []policy.Template{policy.Literal(text)}}
	case "var_combination":
		r.Key = readCombination(r.KeyAt, text)
	default:
		r.Key = readVariable(r.KeyAt, text)
	}
	return r
}

func readRule(o *tree.Object) Rule {
	r := Rule{At: o, KeyAt: o.Value}
	r.readQuantities(o)
	if v, ok := o.Need("key", "write what the rule counts by, such as ${remote_addr}"); ok {
		r.KeyAt = v
		if text, ok := v.Text(); ok {
			r.Key = readCombination(v, text)
		}
	}
	if v, ok := o.Get("header_prefix"); ok {
		if s, ok := v.Text(); ok && !prefix.MatchString(s) {
			v.Fail(v.Quote()+" cannot stand in the name of a header", "use letters, digits and -")
		} else {
			r.HeaderPrefix = s
		}
	}
	o.Done()
	return r
}

var prefix = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

func (r *Rule) readQuantities(o *tree.Object) {
	if v, ok := o.Need("count", "write how many requests pass in a window, such as count: 100"); ok {
		r.Count = readQuantity(v, tree.MaxInt)
	}
	if v, ok := o.Need("time_window", "write the length of the window in seconds, such as time_window: 60"); ok {
		r.Window = readQuantity(v, maxWindow)
	}
}

// readQuantity reads a positive whole number, or a text with variables that becomes one.
func readQuantity(v tree.Value, most int64) Quantity {
	if v.Node.Kind != tree.String {
		n, _ := v.Int(1, most)
		return Quantity{N: n}
	}
	text, ok := v.Text()
	if !ok {
		return Quantity{}
	}
	t, err := policy.Parse(text)
	if e, bad := errors.AsType[*policy.TemplateError](err); bad {
		v.Fail(e.Problem, e.Hint)
		return Quantity{}
	}
	if constant, ok := t.Constant(); ok {
		n, err := strconv.ParseInt(constant, 10, 64)
		if err != nil || n < 1 || n > most {
			v.Fail(v.Quote()+" is neither a positive whole number nor a text with variables", "write a number, or a variable such as ${http_x_count ?? 10}")
		}
		return Quantity{N: n}
	}
	q := Quantity{N: 1, Template: &t}
	if d, ok := t.Eval(nobody{}); ok {
		n, err := strconv.ParseInt(d, 10, 64)
		if err != nil || n < 1 || n > most {
			v.Fail(fmt.Sprintf("the default %q is not a positive whole number", d), "write one, or leave the default out")
			return q
		}
		q.N = n
	}
	unknown(v, t, "a request without it is answered 500, or passes with allow_degradation")
	return q
}

// nobody is a request without any variable: what is left are the defaults.
type nobody struct{}

func (nobody) Var(string) (string, bool) { return "", false }

// readVariable reads a key of key_type var.
func readVariable(v tree.Value, text string) policy.Key {
	if strings.HasPrefix(text, "$") {
		v.Fail(v.Quote()+" is not the name of a variable", "write it without $, or set key_type: var_combination")
		return policy.Key{}
	}
	if h, ok := strings.CutPrefix(text, "http_"); ok {
		text = "http_" + strings.ReplaceAll(strings.ToLower(h), "-", "_")
	}
	t := policy.Variable(text)
	unknown(v, t, "the limit counts by client address: a silent change of scope")
	return policy.Key{Parts: []policy.Template{t}}
}

// readCombination reads a key with $variables and text around them.
func readCombination(v tree.Value, text string) policy.Key {
	t, err := policy.Parse(text)
	if e, bad := errors.AsType[*policy.TemplateError](err); bad {
		v.Fail(e.Problem, e.Hint)
		return policy.Key{}
	}
	if _, constant := t.Constant(); constant {
		hint := "write $NAME for a variable, or set key_type: constant"
		if policy.Known(text) {
			hint = "did you mean $" + text + "?"
		}
		v.Warn(v.Quote()+" names no variable: one counter for all requests", hint)
	} else if !t.AlwaysResolves() {
		unknown(v, t, "where nothing of the key resolves, the limit counts by client address, and a rule is skipped")
	}
	return policy.Key{Parts: []policy.Template{t}}
}

// unknown warns of variables that never have a value.
func unknown(v tree.Value, t policy.Template, effect string) {
	for _, name := range t.Variables() {
		if policy.Known(name) {
			continue
		}
		hint := "use a variable of docs/reference/config.md"
		if near := tree.Nearest(name, policy.Names()); near != "" {
			hint = "did you mean " + near + "?"
		}
		v.Warn(fmt.Sprintf("%s never resolves: there is no such variable; %s", name, effect), hint)
	}
}

// ReadMetadata reads the plugin_metadata of a plugin, without its id.
func ReadMetadata(o *tree.Object) Metadata {
	m := DefaultMetadata()
	for _, field := range []struct {
		key string
		to  *string
	}{{"limit_header", &m.Limit}, {"remaining_header", &m.Remaining}, {"reset_header", &m.Reset}} {
		v, ok := o.Get(field.key)
		if !ok {
			continue
		}
		s, ok := v.Text()
		if ok && !header.MatchString(s) {
			v.Fail(v.Quote()+" is not the name of a header", "use letters, digits and -, such as X-RateLimit-Limit")
		} else if ok {
			*field.to = textproto.CanonicalMIMEHeaderKey(s)
		}
	}
	return m
}

var header = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")
