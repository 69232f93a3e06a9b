package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/replay"
	"github.com/escapement-io/escapement/internal/replay/trace"
)

// limitFlags are the ways to say which limits a trace is replayed through.
type limitFlags struct {
	Config            string   `short:"c" placeholder:"FILE" help:"Configuration to take the limits from; see --limit and --route."`
	IgnoreUnsupported bool     `help:"Leave out what of the configuration is not supported."`
	Limit             []string `sep:"none" placeholder:"NAME|SPEC" help:"With --config the name of a limit; else a limit, such as \"token_bucket 100/1s burst 200\". Repeat for more: a request is charged to all or none."`
	Route             string   `placeholder:"ID" help:"With --config: the limits of this route."`

	Algorithm string `placeholder:"NAME" help:"A limit in flags: token_bucket, gcra, fixed_window, sliding_window, rolling_window or pacing."`
	Count     int64  `help:"Its units per period."`
	Per       string `placeholder:"SPAN" help:"Its period, such as 10s."`
	Burst     int64  `help:"Its capacity: token_bucket and gcra."`
	MaxDelay  string `placeholder:"SPAN" help:"The longest a caller may be held: pacing."`
	Align     string `placeholder:"HOW" help:"Where its windows begin: epoch, first_use, day, week or month: fixed_window."`
	Zone      string `placeholder:"ZONE" help:"Time zone of day, week and month."`
	Headroom  string `placeholder:"PERCENT" help:"Per cent of it to keep back."`
}

// chooser finds the limits to try and the keys of the trace they count by.
type chooser struct {
	out   *Output
	shape *trace.Shape
	key   []string   // chosen for all limits; nil: each limit's own
	keys  [][]string // of the layout
}

func (c *chooser) sets(cmd *ReplayCmd) ([]replay.Set, error) {
	first, err := c.first(cmd)
	if err != nil {
		return nil, err
	}
	sets := []replay.Set{first}
	if len(cmd.Compare) == 0 {
		return sets, nil
	}
	var second replay.Set
	if len(cmd.Compare) == 1 && isFile(cmd.Compare[0]) {
		second, err = c.fromConfig(cmd.Compare[0], &cmd.Limits)
	} else {
		second, err = c.fromSpecs(cmd.Compare)
	}
	if second.Name == first.Name {
		second.Name += " (compared)"
	}
	return append(sets, second), err
}

func (c *chooser) first(cmd *ReplayCmd) (replay.Set, error) {
	f := &cmd.Limits
	switch {
	case f.Config != "" && f.Algorithm != "":
		return replay.Set{}, usage("replay: both --config and --algorithm; choose one")
	case f.Config != "":
		return c.fromConfig(f.Config, f)
	case f.Algorithm != "" && len(f.Limit) > 0:
		return replay.Set{}, usage("replay: both --limit and --algorithm; write the second limit as a --limit too")
	case f.Algorithm != "":
		return c.fromSpecs([]string{f.spec()})
	case len(f.Limit) > 0:
		return c.fromSpecs(f.Limit)
	}
	return replay.Set{}, usage("replay: no limit to try\n  give --config FILE, --limit \"token_bucket 100/1s burst 200\", or --algorithm with --count and --per")
}

// spec writes the flags as a --limit would.
func (f *limitFlags) spec() string {
	words := []string{f.Algorithm, fmt.Sprint(f.Count)}
	if f.Per != "" {
		words[1] += "/" + f.Per
	}
	add := func(word, value string) {
		if value != "" {
			words = append(words, word, value)
		}
	}
	if f.Burst != 0 {
		add("burst", fmt.Sprint(f.Burst))
	}
	add("max_delay", f.MaxDelay)
	add("align", f.Align)
	add("zone", f.Zone)
	add("headroom", f.Headroom)
	return strings.Join(words, " ")
}

func (c *chooser) fromSpecs(specs []string) (replay.Set, error) {
	set := replay.Set{Name: strings.Join(specs, " + ")}
	key := c.key
	if key == nil {
		name, ok := c.shape.DefaultKey()
		if !ok {
			return set, usage("replay: no field of the trace has a name for a key; choose one with --key: %s", strings.Join(c.shape.Names, ", "))
		}
		key = []string{name}
	}
	for i, text := range specs {
		l, err := replay.ParseSpec(text)
		if err != nil {
			return set, usage("%w", err)
		}
		if l.Name == "" {
			l.Name = l.Algorithm.String()
			if len(specs) > 1 {
				l.Name = fmt.Sprintf("%s-%d", l.Name, i+1)
			}
		}
		p, err := l.Compile()
		if err != nil {
			return set, usage("replay: limit %q: %w", text, err)
		}
		for _, other := range set.Limits {
			if other.Plan.Limit().Name == l.Name {
				return set, usage("replay: two limits are called %s", l.Name)
			}
		}
		set.Limits = append(set.Limits, replay.Counted{Plan: p, Key: c.number(key)})
	}
	return set, nil
}

func (c *chooser) fromConfig(file string, f *limitFlags) (replay.Set, error) {
	set := replay.Set{Name: file}
	cfg, findings, err := config.Load(file, config.Options{IgnoreUnsupported: f.IgnoreUnsupported})
	if err != nil {
		return set, fmt.Errorf("replay: %w", err)
	}
	if cfg == nil {
		printFindings(c.out.Err, findings)
		return set, found()
	}
	limits, err := selected(cfg, f)
	if err != nil {
		return set, usage("replay: %s: %w", file, err)
	}
	for _, l := range limits {
		if l.Count != nil || l.Window != nil {
			return set, usage("replay: %s: limit %s takes its count or window from each request, which a trace does not have", file, l.Name)
		}
		p, err := l.Compile()
		if err != nil {
			return set, fmt.Errorf("replay: %s: limit %s: %w", file, l.Name, err)
		}
		key, err := c.keyOf(l)
		if err != nil {
			return set, err
		}
		set.Limits = append(set.Limits, replay.Counted{Plan: p, Key: c.number(key)})
	}
	return set, nil
}

// selected are the limits of a configuration that one request would meet.
func selected(cfg *config.Config, f *limitFlags) ([]*config.Limit, error) {
	switch {
	case len(f.Limit) > 0:
		var limits []*config.Limit
		for _, name := range f.Limit {
			i := slices.IndexFunc(cfg.Limits, func(l *config.Limit) bool { return l.Name == name })
			if i < 0 {
				return nil, fmt.Errorf("there is no limit %q; there are %s", name, names(cfg))
			}
			limits = append(limits, cfg.Limits[i])
		}
		return limits, nil
	case f.Route != "":
		for _, r := range cfg.Routes {
			if r.ID == f.Route && len(r.Limits) > 0 {
				return r.Limits, nil
			}
		}
		return nil, fmt.Errorf("there is no route %q with limits", f.Route)
	case len(cfg.Limits) == 0:
		return nil, fmt.Errorf("there are no limits in it")
	}
	var limited [][]*config.Limit
	for _, r := range cfg.Routes {
		if len(r.Limits) > 0 {
			limited = append(limited, r.Limits)
		}
	}
	for _, l := range limited {
		if !slices.Equal(l, limited[0]) {
			return nil, fmt.Errorf("its routes have different limits; choose with --limit NAME or --route ID: %s", names(cfg))
		}
	}
	if len(limited) > 0 {
		return limited[0], nil
	}
	return cfg.Limits, nil
}

func names(cfg *config.Config) string {
	var s []string
	for _, l := range cfg.Limits {
		s = append(s, l.Name)
	}
	return strings.Join(s, ", ")
}

// keyOf is the fields of the trace that a limit counts by: --key, or the variables of its
// own key, or where the trace does not have those, what it has for a key.
func (c *chooser) keyOf(l *config.Limit) ([]string, error) {
	if c.key != nil {
		return c.key, nil
	}
	variables := l.Key.Variables()
	missing := slices.DeleteFunc(slices.Clone(variables), c.shape.Has)
	if len(missing) == 0 {
		return variables, nil
	}
	name, ok := c.shape.DefaultKey()
	if !ok {
		return nil, usage("replay: limit %s counts by %s, and the trace has no %s; choose a field with --key: %s",
			l.Name, l.Key, strings.Join(missing, ", "), strings.Join(c.shape.Names, ", "))
	}
	c.out.Logf("escapement: replay: limit %s counts by %s, which the trace does not have; its field %s is taken instead", l.Name, l.Key, name)
	return []string{name}, nil
}

// number is the place of a key in the layout.
func (c *chooser) number(key []string) int {
	for i, k := range c.keys {
		if slices.Equal(k, key) {
			return i
		}
	}
	c.keys = append(c.keys, key)
	return len(c.keys) - 1
}
