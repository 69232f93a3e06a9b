package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/textproto"
	"strconv"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config/limitcount"
	"github.com/escapement-io/escapement/internal/config/tree"
)

// group is one set of limits that several plugins share.
type group struct {
	origin tree.Value
	same   string // what the plugins have to agree on
	limits []*Limit
}

// addCompatible turns a limit-count or limit-count-advanced of a route into limits.
func (b *builder) addCompatible(o *tree.Object, plugin string, r *Route) {
	conf := limitcount.Read(o)
	if !o.Has("rejected_code") {
		o.Warn(fmt.Sprintf("rejected_code is not set: refused clients get %d, which reads as a failure of the server", limitcount.DefaultCode),
			"write rejected_code: 429")
	}
	adviseCompatible(o, plugin)
	if conf == nil {
		return
	}
	name := limitName(r.ID, plugin)
	if conf.Group != "" {
		name = limitName(conf.Group, plugin+"-group")
		if g, ok := b.groups[name]; ok {
			b.joinGroup(g, o, conf, r)
			return
		}
	}
	store := b.pluginStore(o, conf)
	var limits []*Limit
	for i := range conf.Rules {
		if l := b.compatible(o, conf, i, name, plugin); l != nil {
			l.Store = store
			limits = append(limits, l)
		}
	}
	if len(limits) < len(conf.Rules) {
		return
	}
	if conf.Group != "" {
		b.groups[name] = &group{o.Value, conf.Settings(o), limits}
	}
	r.Limits = append(r.Limits, limits...)
}

// pluginStore is the store of a Redis policy; nil for the local one.
func (b *builder) pluginStore(o *tree.Object, conf *limitcount.Conf) *Store {
	r := conf.Redis
	if r == nil {
		return nil
	}
	s := &Store{Mode: r.Mode, Addrs: r.Addrs, Primary: r.Primary, DB: r.DB, Deadline: r.Timeout}
	if s.Deadline == 0 {
		s.Deadline = StoreDeadline
	}
	if r.TLS {
		s.TLS = &StoreTLS{Verify: r.Verify}
	}
	for i, to := range []*string{&s.Username, &s.Password, &s.SentinelUsername, &s.SentinelPassword} {
		if v, ok := o.Get(limitcount.Credentials[i]); ok {
			*to, _ = b.secret(v)
		}
	}
	s.Name = "redis:" + r.Addrs[0]
	if r.Primary != "" {
		s.Name = "redis:" + r.Primary
	}
	if r.DB != 0 {
		s.Name += "/" + strconv.Itoa(r.DB)
	}
	return b.addStore(s, o.Value)
}

// joinGroup lets a route share the limits of a group, if its configuration is the same.
func (b *builder) joinGroup(g *group, o *tree.Object, conf *limitcount.Conf, r *Route) {
	if conf.Settings(o) != g.same {
		o.At("group").Fail("group conf mismatched: the configuration differs from that of line "+strconv.Itoa(g.origin.Node.Place.Line),
			"write the same configuration wherever the group "+strconv.Quote(conf.Group)+" is used")
		return
	}
	r.Limits = append(r.Limits, g.limits...)
}

// limitName is a name made of what identifies the limit and stays when routes move. The
// kind at its end keeps names of different kinds apart; what does not fit or had to be
// replaced is told apart by a hash.
func limitName(id, kind string) string {
	name := slug(id)
	if room := 64 - len(kind) - len("_00") - 1; name != id || len(name) > room {
		sum := sha256.Sum256([]byte(id))
		name = name[:min(len(name), room-9)] + "-" + hex.EncodeToString(sum[:4])
	}
	return name + "_" + kind
}

// compatible is the limit of one rule; nil if it cannot be compiled or its name is taken.
func (b *builder) compatible(o *tree.Object, conf *limitcount.Conf, i int, name, plugin string) *Limit {
	rule := &conf.Rules[i]
	l := &Limit{
		Limit: escapement.Limit{
			Name: name, Algorithm: escapement.FixedWindow, Align: escapement.FirstUse,
			Rate: escapement.Rate{Count: rule.Count.N, Per: time.Duration(rule.Window.N) * time.Second},
		},
		Key: rule.Key, Compatible: true,
		Count: rule.Count.Template, Window: rule.Window.Template,
		AllowDegradation: conf.AllowDegradation,
		Rejected:         Rejected{Code: conf.RejectedCode, Msg: conf.RejectedMsg},
		Headers:          b.compatibleHeaders(conf, i, plugin),
	}
	if conf.Sliding {
		l.Algorithm, l.Align = escapement.SlidingWindow, escapement.Epoch
	}
	if conf.AllowDegradation {
		l.OnFailure = escapement.Allow
	}
	if conf.InRules {
		l.RuleSet, l.SkipUnresolved = name, true
		l.Name += "_" + strconv.Itoa(i+1)
	}
	if conf.SyncInterval > 0 && !syncCompatible(conf, rule, l) {
		return nil
	}
	if _, err := l.ForWindow(l.Rate.Per).Compile(); err != nil {
		compileProblems(err, rule.At, o.Value, map[string]string{"per": "time_window", "sync": "sync_interval"}, nil)
		return nil
	}
	if origin, taken := b.names[l.Name]; taken {
		o.Fail(fmt.Sprintf("the limit of this plugin would be named %s, as %s is", l.Name, origin), "give the route, or the other limit, another name")
		return nil
	}
	b.names[l.Name] = o.Path
	b.sources[l] = source{o.Value, rule.KeyAt}
	return l
}

func (b *builder) compatibleHeaders(conf *limitcount.Conf, i int, plugin string) Headers {
	if !conf.ShowHeader {
		return Headers{Style: "none"}
	}
	m, ok := b.metadata[plugin]
	if !ok {
		m = limitcount.DefaultMetadata()
	}
	h := Headers{Style: "compat", Limit: m.Limit, Remaining: m.Remaining, Reset: m.Reset}
	if conf.InRules {
		p := conf.Rules[i].HeaderPrefix
		if p == "" {
			p = strconv.Itoa(i + 1)
		}
		head := textproto.CanonicalMIMEHeaderKey("X-" + p + "-RateLimit-")
		h.Limit, h.Remaining, h.Reset = head+"Limit", head+"Remaining", head+"Reset"
	}
	return h
}
