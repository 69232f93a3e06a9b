package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/escapement-io/escapement/internal/config/tree"
)

// Scenario is a file of worlds that tell a story when they stand side by side.
type Scenario struct {
	Title string
	Runs  []*Setup
}

// Bounds of a scenario.
const (
	MaxRuns  = 50
	MaxSeeds = 100
	maxList  = 100
)

// Parse reads a scenario. What the file says at its top holds for every run; an entry of
// runs changes what it names. The findings are sorted by place; the Scenario is nil if
// one of them is an error.
func Parse(name string, data []byte) (*Scenario, []tree.Finding) {
	r := &tree.Report{File: name}
	doc := tree.Parse(r, data)
	var sc *Scenario
	if doc != nil {
		if o, ok := tree.Root(r, doc).Object(); ok {
			sc = scenario(o)
		}
	}
	if r.Failed() || sc == nil {
		return nil, r.Findings()
	}
	return sc, r.Findings()
}

func scenario(o *tree.Object) *Scenario {
	sc := &Scenario{}
	if v, ok := o.Need("title", "say in one line what the scenario shows"); ok {
		sc.Title, _ = v.Text()
	}
	base := Setup{Instances: 2, Sync: 200 * time.Millisecond, Phases: Spread, For: 30 * time.Second, Seeds: 1,
		Network: Network{Latency: 200 * time.Microsecond, Jitter: 50 * time.Microsecond, Timeout: 50 * time.Millisecond}}
	before := o.Report().Errors()
	read(o, &base)
	sound := o.Report().Errors() == before // if not, what a run lacks may follow from that
	runs, several := o.Get("runs")
	o.Done()
	if !several {
		base.Name = string(base.Mode)
		sc.Runs = []*Setup{&base}
		if o.Report().Errors() == before {
			base.judge(o.Value)
		}
		return sc
	}
	items, _ := runs.Items(MaxRuns)
	if len(items) == 0 && o.Report().Errors() == before {
		runs.Fail("no run", "write what differs, such as - {name: lease, mode: lease}, or remove runs")
	}
	for _, item := range items {
		ro, ok := item.Object()
		if !ok {
			continue
		}
		s := base
		before := o.Report().Errors()
		if v, ok := ro.Need("name", "name what differs"); ok {
			s.Name, _ = v.Text()
		}
		read(ro, &s)
		ro.Done()
		if sound && o.Report().Errors() == before {
			s.judge(item)
		}
		sc.Runs = append(sc.Runs, &s)
	}
	return sc
}

// reader reads keys of one map into fields, where they are there.
type reader struct{ o *tree.Object }

func (r reader) int(key string, to *int, least, most int64) {
	if v, ok := r.o.Get(key); ok {
		if n, ok := v.Int(least, most); ok {
			*to = int(n)
		}
	}
}

func (r reader) units(key string, to *int64, least, most int64) {
	if v, ok := r.o.Get(key); ok {
		if n, ok := v.Int(least, most); ok {
			*to = n
		}
	}
}

func (r reader) number(key string, to *float64, least, most float64) {
	if v, ok := r.o.Get(key); ok {
		n, ok := v.Number()
		switch {
		case !ok:
		case n < least || n > most:
			v.Fail(fmt.Sprintf("%v is out of range", n), fmt.Sprintf("use %v to %v", least, most))
		default:
			*to = n
		}
	}
}

func (r reader) span(key string, to *time.Duration, least time.Duration) {
	if v, ok := r.o.Get(key); ok {
		if d, ok := v.Duration(least, MaxDuration); ok {
			*to = d
		}
	}
}

// signed reads a span that may point backwards.
func (r reader) signed(key string, to *time.Duration) {
	v, ok := r.o.Get(key)
	if !ok {
		return
	}
	s, ok := v.Text()
	if !ok {
		return
	}
	d, err := time.ParseDuration(strings.TrimPrefix(s, "+"))
	if err != nil || d > MaxDuration || d < -MaxDuration {
		v.Fail(v.Quote()+" is not a length of time within a day", "write a number and a unit, such as 900ms or -45s")
		return
	}
	*to = d
}

func (r reader) bool(key string, to *bool) {
	if v, ok := r.o.Get(key); ok {
		if b, ok := v.Bool(); ok {
			*to = b
		}
	}
}

func word[T ~string](r reader, key string, to *T, words ...T) {
	if v, ok := r.o.Get(key); ok {
		list := make([]string, len(words))
		for i, w := range words {
			list[i] = string(w)
		}
		if s, ok := v.OneOf(list...); ok {
			*to = T(s)
		}
	}
}

// object reads a map below a key.
func (r reader) object(key string, read func(reader)) {
	if v, ok := r.o.Get(key); ok {
		if o, ok := v.Object(); ok {
			read(reader{o})
			o.Done()
		}
	}
}

// list replaces a list by the maps below a key.
func list[T any](r reader, key string, to *[]T, read func(reader, *T)) {
	v, ok := r.o.Get(key)
	if !ok {
		return
	}
	*to = nil
	items, _ := v.Items(maxList)
	for _, item := range items {
		if o, ok := item.Object(); ok {
			var t T
			read(reader{o}, &t)
			o.Done()
			*to = append(*to, t)
		}
	}
}

func read(o *tree.Object, s *Setup) {
	r := reader{o}
	r.int("instances", &s.Instances, 1, MaxInstances)
	r.units("limit", &s.Limit, 1, tree.MaxInt)
	r.span("per", &s.Per, time.Millisecond)
	r.units("burst", &s.Burst, 1, tree.MaxInt)
	word(r, "window", &s.Window, Fixed, FirstUse, Sliding, Rolling, Bucket)
	word(r, "mode", &s.Mode, Delayed, Leased, Exact)
	r.int("exact_instances", &s.Exact, 0, MaxInstances)
	r.span("sync", &s.Sync, time.Millisecond)
	word(r, "phases", &s.Phases, Spread, Hashed, Aligned)
	r.int("extras", &s.Extras, -1, 1000)
	r.int("buckets", &s.Buckets, 8, 1024)
	r.bool("skip_dry", &s.SkipDry)
	r.int("overbook", &s.Over, 0, 100)
	r.span("for", &s.For, time.Millisecond)
	r.span("warmup", &s.Warmup, 0)
	r.int("seeds", &s.Seeds, 1, MaxSeeds)
	policy := "deny"
	if s.OpenUp {
		policy = "allow"
	} else if s.Share {
		policy = "local_share"
	}
	word(r, "on_failure", &policy, "deny", "allow", "local_share")
	s.OpenUp, s.Share = policy == "allow", policy == "local_share"
	r.bool("fence", &s.Fence)
	r.object("load", func(r reader) { s.Load = Load{}; s.Load.read(r) })
	r.object("network", func(r reader) {
		r.span("latency", &s.Network.Latency, 0)
		r.span("jitter", &s.Network.Jitter, 0)
		r.span("timeout", &s.Network.Timeout, time.Millisecond)
		r.number("loss", &s.Network.Loss, 0, 1)
	})
	list(r, "clocks", &s.Clocks, func(r reader, c *Clock) {
		r.int("instance", &c.Instance, 0, MaxInstances-1)
		r.signed("offset", &c.Offset)
		r.units("ppm", &c.PPM, -400, 400)
		list(r, "steps", &c.Steps, readStep)
	})
	r.object("store", func(r reader) { s.Store = Store{}; s.Store.read(r) })
	list(r, "crashes", &s.Crashes, func(r reader, c *Crash) {
		r.int("instance", &c.Instance, 0, MaxInstances-1)
		r.span("at", &c.At, 0)
	})
	list(r, "pauses", &s.Pauses, func(r reader, p *Pause) {
		r.int("instance", &p.Instance, 0, MaxInstances-1)
		r.span("at", &p.At, 0)
		r.span("for", &p.For, time.Microsecond)
	})
}

func readStep(r reader, s *Step) {
	r.span("at", &s.At, 0)
	r.signed("by", &s.By)
}

func (l *Load) read(r reader) {
	word(r, "kind", &l.Kind, Constant, Poisson, OnOff, Ramp, Burst)
	r.number("rate", &l.Rate, 0.001, 1e7)
	r.number("to", &l.To, 0.001, 1e7)
	r.span("on", &l.On, time.Millisecond)
	r.span("off", &l.Off, 0)
	r.int("each", &l.Each, 1, MaxRequests)
	r.span("every", &l.Every, time.Millisecond)
	r.span("start", &l.Start, 0)
	r.number("skew", &l.Skew, 0, 1)
	r.span("turn", &l.Turn, time.Millisecond)
	r.units("cost", &l.Cost, 1, 1<<32-1)
}

func (s *Store) read(r reader) {
	r.span("offset", &s.Offset, 0)
	list(r, "steps", &s.Steps, readStep)
	list(r, "outages", &s.Outages, func(r reader, o *Outage) {
		r.span("at", &o.At, 0)
		r.span("for", &o.For, time.Microsecond)
	})
	list(r, "failovers", &s.Failovers, func(r reader, f *Failover) {
		r.span("at", &f.At, 0)
		r.span("loses", &f.Loses, 0)
	})
}

// judge reports what no single key shows.
func (s *Setup) judge(v tree.Value) {
	needs := func(key string, missing bool, hint string) {
		if missing {
			v.Fail(key+" is missing", hint)
		}
	}
	needs("limit", s.Limit == 0, "write the units per period, such as 500")
	needs("per", s.Per == 0, "write the period, such as 1s")
	needs("window", s.Window == "", "use fixed, fixed_first_use, sliding, rolling or bucket")
	needs("mode", s.Mode == "", "use delayed, lease or exact")
	needs("load.kind", s.Load.Kind == "", "use constant, poisson, onoff, ramp or burst")
	switch s.Load.Kind {
	case Constant, Poisson, OnOff, Ramp:
		needs("load.rate", s.Load.Rate == 0, "write requests a second over all instances")
		needs("load.to", s.Load.Kind == Ramp && s.Load.To == 0, "write the rate at the end")
		needs("load.on", s.Load.Kind == OnOff && s.Load.On == 0, "write how long requests come")
	case Burst:
		needs("load.each", s.Load.Each == 0, "write the requests at each instance")
	}
	if s.Limit > 0 && s.Per > 0 && s.Window != "" && s.Mode != "" {
		if _, err := s.compile(); err != nil {
			v.Fail(strings.TrimPrefix(err.Error(), "sim: "), "")
		}
	}
	if s.Exact > s.Instances || s.Exact > 0 && s.Mode != Leased {
		v.Fail("exact_instances are instances of a lease that ask about every request", "use at most the number of instances, with mode: lease")
	}
	if (s.Share || s.Fence) && s.Mode != Leased {
		v.Fail("on_failure: local_share and fence are about leases", "write mode: lease, or remove them")
	}
	for i := range s.Clocks {
		s.exists(v, s.Clocks[i].Instance)
	}
	for i := range s.Crashes {
		s.exists(v, s.Crashes[i].Instance)
	}
	for i := range s.Pauses {
		s.exists(v, s.Pauses[i].Instance)
	}
	for _, f := range s.Store.Failovers {
		if f.Loses > f.At {
			v.Fail(fmt.Sprintf("a failover at %v cannot lose %v", f.At, f.Loses), "lose less, or fail over later")
		}
	}
}

func (s *Setup) exists(v tree.Value, instance int) {
	if instance >= s.Instances {
		v.Fail(fmt.Sprintf("instance %d does not exist", instance), fmt.Sprintf("use 0 to %d", s.Instances-1))
	}
}
