package config

import (
	"errors"
	"fmt"
	"net/http"
	"time"
	_ "time/tzdata" // zones mean the same on machines that have no database of them

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/config/tree"
	"github.com/escapement-io/escapement/internal/policy"
)

const century = 36525 * 24 * time.Hour

func (b *builder) readLimits(v tree.Value) {
	entries, _ := v.Entries(MaxLimits)
	for _, e := range entries {
		b.limits[e.Name] = nil
		if o, ok := e.Object(); ok {
			b.readLimit(e, o)
		}
	}
}

func (b *builder) readLimit(e tree.Entry, o *tree.Object) {
	l := &Limit{
		Limit:    escapement.Limit{Name: e.Name, Algorithm: escapement.TokenBucket},
		Rejected: Rejected{Code: http.StatusTooManyRequests},
		Headers:  Headers{Style: "ietf", RetryAfter: true},
	}
	errors := b.report.Errors()
	faulty := readRate(o, l)
	if v, ok := o.Get("shadow"); ok {
		l.Shadow, _ = v.Bool()
	}
	b.readStoreUse(o, l)
	if v, ok := o.Need("key", "name what is limited, such as [remote_addr]; [] is one counter for all"); ok {
		l.Key = readKey(v)
		b.sources[l] = source{e.Key, v}
	}
	if v, ok := o.Get("bypass"); ok {
		l.Bypass = readBypass(v)
	}
	if v, ok := o.Get("rejected_code"); ok {
		if n, ok := v.Int(400, 599); ok {
			l.Rejected.Code = int(n)
		}
	}
	if v, ok := o.Get("rejected_msg"); ok {
		l.Rejected.Msg, _ = v.Text()
	}
	if v, ok := o.Get("headers"); ok {
		readHeaders(v, &l.Headers)
	}
	o.Otherwise(ofPlugins)
	o.Done()
	if !faulty["algorithm"] {
		// What could not be read is judged as harmless, so that the rest is judged too.
		judged := l.Limit
		if faulty["count"] {
			judged.Rate.Count = 1
		}
		if faulty["per"] {
			judged.Rate.Per = time.Second
		}
		_, err := judged.Compile()
		compileProblems(err, o, e.Key, nil, faulty)
	}
	if b.report.Errors() > errors {
		return
	}
	adviseLimit(o, l)
	adviseShare(o, l)
	b.limits[e.Name] = l
	b.names[e.Name] = o.Path
	b.config.Limits = append(b.config.Limits, l)
}

// readRate reads what Compile judges, and names the keys that are missing or no value.
func readRate(o *tree.Object, l *Limit) (faulty map[string]bool) {
	faulty = map[string]bool{}
	get := func(key string, read func(v tree.Value) bool) {
		if v, ok := o.Get(key); ok && !read(v) {
			faulty[key] = true
		}
	}
	integer := func(key string, least, most int64, set func(int64)) {
		get(key, func(v tree.Value) bool {
			n, ok := v.Int(least, most)
			if ok {
				set(n)
			}
			return ok
		})
	}
	get("algorithm", func(v tree.Value) bool {
		s, ok := v.OneOf("token_bucket", "gcra", "fixed_window", "sliding_window", "rolling_window", "pacing")
		if ok {
			l.Algorithm, ok = algo.ParseAlgorithm(s)
		}
		return ok
	})
	integer("count", 1, tree.MaxInt, func(n int64) { l.Rate.Count = n })
	integer("burst", 1, tree.MaxInt, func(n int64) { l.Burst = n })
	integer("buckets", algo.MinBuckets, algo.MaxBuckets, func(n int64) { l.Buckets = int(n) })
	integer("headroom", 0, 99, func(n int64) { l.Headroom = int(n) })
	get("per", func(v tree.Value) (ok bool) {
		l.Rate.Per, ok = v.Duration(time.Microsecond, century)
		return ok
	})
	get("max_delay", func(v tree.Value) (ok bool) {
		l.MaxDelay, ok = v.Duration(0, century)
		return ok
	})
	get("align", func(v tree.Value) bool {
		s, ok := v.OneOf("epoch", "first_use", "day", "week", "month")
		if ok {
			l.Align, _ = escapement.ParseAlign(s)
		}
		return ok
	})
	get("zone", func(v tree.Value) (ok bool) {
		l.Zone, ok = zone(v)
		return ok
	})
	if !o.Has("count") {
		o.Fail("count is missing", "write how many requests are let through, such as count: 100")
		faulty["count"] = true
	}
	if !o.Has("per") && l.Align < escapement.Day && !faulty["align"] {
		o.Fail("per is missing", "write the period, such as per: 1m")
		faulty["per"] = true
	}
	return faulty
}

func zone(v tree.Value) (*time.Location, bool) {
	s, ok := v.Text()
	if !ok {
		return nil, false
	}
	if s == "Local" {
		v.Fail("Local differs from machine to machine", "name a zone, such as Europe/Paris, or UTC")
		return nil, false
	}
	z, err := time.LoadLocation(s)
	if err != nil {
		v.Fail(v.Quote()+" is not a known time zone", "use a name of the IANA database, such as Europe/Paris, or UTC")
		return nil, false
	}
	return z, true
}

// readKey reads a list of variables and templates, or a single one.
func readKey(v tree.Value) policy.Key {
	var k policy.Key
	if v.Node.Kind == tree.String {
		if t, ok := keyPart(v); ok {
			k.Parts = append(k.Parts, t)
		}
		return k
	}
	items, _ := v.Items(policy.MaxParts)
	for _, item := range items {
		if t, ok := keyPart(item); ok {
			k.Parts = append(k.Parts, t)
		}
	}
	return k
}

// keyPart reads the name of a variable, or a template with at least one.
func keyPart(v tree.Value) (policy.Template, bool) {
	s, ok := v.Text()
	if !ok {
		return policy.Template{}, false
	}
	t := policy.Variable(s)
	if !policy.IsName(s) {
		if t, ok = template(v); !ok {
			return t, false
		}
	}
	names := t.Variables()
	if len(names) == 0 {
		v.Fail(v.Quote()+" names no variable: it is the same for every request", "write a variable such as remote_addr, or key: [] for one counter for all")
		return t, false
	}
	for _, name := range names {
		if !policy.Known(name) {
			v.Fail(fmt.Sprintf("%s can never resolve: there is no such variable", name), variableHint(name))
			ok = false
		}
	}
	return t, ok
}

func template(v tree.Value) (policy.Template, bool) {
	s, ok := v.Text()
	if !ok {
		return policy.Template{}, false
	}
	t, err := policy.Parse(s)
	if e, isTemplate := errors.AsType[*policy.TemplateError](err); isTemplate {
		v.Fail(e.Problem, e.Hint)
		return t, false
	}
	return t, true
}

func variableHint(name string) string {
	if near := tree.Nearest(name, policy.Names()); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "use remote_addr, consumer_name, http_NAME for a header, arg_NAME, cookie_NAME or one of docs/reference/config.md"
}

// readBypass reads who is let through uncounted: networks, and variables with a value.
func readBypass(v tree.Value) []policy.Bypass {
	items, _ := v.Items(1000)
	var out []policy.Bypass
	for _, item := range items {
		o, ok := item.Object()
		if !ok {
			continue
		}
		var by policy.Bypass
		good := false
		if v, ok := o.Get("cidr"); ok {
			if by.Prefix, good = prefix(v); good && everybody(by.Prefix) {
				v.Warn("every client passes uncounted", "name the networks that should")
			}
		}
		name, named := o.Get("var")
		value, valued := o.Get("value")
		if valued {
			value.Hide() // who knows it passes
		}
		switch {
		case named && valued:
			by.Var, _ = name.Text()
			by.Value, good = value.Text()
			if by.Var != "" && !policy.Known(by.Var) {
				name.Fail(fmt.Sprintf("%s can never resolve: there is no such variable", by.Var), variableHint(by.Var))
			}
		case named != valued:
			o.Fail("var and value belong together", "write both, such as {var: consumer_name, value: probe}")
		}
		if o.Has("cidr") == named && !named {
			o.Fail("the entry lets nobody through", "write {cidr: NETWORK} or {var: NAME, value: TEXT}")
		} else if o.Has("cidr") && named {
			o.Fail("cidr and var in one entry", "make two entries of it: each one lets through")
		}
		o.Done()
		if good {
			out = append(out, by)
		}
	}
	return out
}

// ofPlugins says what options of limit-count and its kin are called in a limit.
var ofPlugins = map[string]string{
	"time_window":       "write per, with a unit, such as per: 10s",
	"window_type":       "write algorithm: fixed_window, sliding_window or rolling_window",
	"key_type":          "remove it; key is a list of variables and of texts with $variables",
	"policy":            "write store, with the name of an entry below stores",
	"sync_interval":     "write sync, with a unit, such as sync: {interval: 200ms}",
	"sync_mode":         "write it below sync, such as sync: {interval: 200ms, mode: delayed}",
	"allow_degradation": "write on_failure: allow",
}

func readHeaders(v tree.Value, h *Headers) {
	if v.Node.Kind == tree.String {
		if s, ok := v.OneOf("ietf", "draft03", "x", "none"); ok {
			h.Style = s
		}
		return
	}
	o, ok := v.Object()
	if !ok {
		return
	}
	if v, ok := o.Get("style"); ok {
		if s, ok := v.OneOf("ietf", "draft03", "x", "none"); ok {
			h.Style = s
		}
	}
	if v, ok := o.Get("retry_after"); ok {
		h.RetryAfter, _ = v.Bool()
	}
	if v, ok := o.Get("jitter"); ok {
		h.Jitter, _ = v.Duration(0, time.Hour)
	}
	o.Done()
}
