package config

import (
	"net/url"
	"time"

	"github.com/escapement-io/escapement/internal/config/tree"
)

// Clock is how the gateway watches the clocks of its machine. It takes effect at the start.
type Clock struct {
	Warning  time.Duration // size from which a step is a warning; zero: the guard's default
	Critical time.Duration // size from which it is critical; zero: the guard's default
	// IgnoreSuspend leaves time during which the machine slept out of what limits in memory
	// earn and out of guarded time.
	IgnoreSuspend bool
	OnStep        *OnStep // nil: nobody is told but the log
}

// OnStep is who is told when the clock misbehaves: a program or an address. A zero length
// of time means the default of package clock/hook.
type OnStep struct {
	Exec    []string
	Webhook string // a secret: tokens stand in such addresses
	Kinds   []string
	MinSize time.Duration
	Every   time.Duration
	Timeout time.Duration
}

// clockKinds are the events that may be told, by the names of package clock.
var clockKinds = []string{"step", "suspend", "leap", "rebased", "switched", "unclear"}

// maxWords is how many words a program may be started with.
const maxWords = 64

func (b *builder) readClock(v tree.Value) {
	o, ok := v.Object()
	if !ok {
		return
	}
	c := &b.config.Clock
	// The defaults of the guard, which a single one of the two is compared with.
	warning, critical := 5*time.Millisecond, 100*time.Millisecond
	if v, ok := o.Get("warning"); ok {
		if d, ok := v.Duration(time.Millisecond, time.Hour); ok {
			c.Warning, warning = d, d
		}
	}
	if v, ok := o.Get("critical"); ok {
		if d, ok := v.Duration(time.Millisecond, time.Hour); ok {
			c.Critical, critical = d, d
		}
	}
	if critical < warning {
		o.Fail("critical is below warning: a step would be critical before it is worth a warning", "write critical as the larger of the two; the defaults are 5ms and 100ms")
	}
	if v, ok := o.Get("suspend_credit"); ok {
		if credit, ok := v.Bool(); ok {
			c.IgnoreSuspend = !credit
		}
	}
	if v, ok := o.Get("on_step"); ok {
		c.OnStep = b.readOnStep(v)
	}
	o.Done()
}

func (b *builder) readOnStep(v tree.Value) *OnStep {
	o, ok := v.Object()
	if !ok {
		return nil
	}
	s := &OnStep{}
	if v, ok := o.Get("exec"); ok {
		for _, word := range v.Texts(maxWords) {
			text, _ := word.Text()
			s.Exec = append(s.Exec, text)
		}
	}
	if v, ok := o.Get("webhook"); ok {
		s.Webhook = b.webhook(v)
	}
	if o.Has("exec") == o.Has("webhook") {
		o.Fail("one of exec and webhook is needed, and not both", "write exec: [PROGRAM, ARGUMENT] or webhook: https://HOST/PATH")
	}
	if v, ok := o.Get("kinds"); ok {
		for _, item := range v.Texts(len(clockKinds)) {
			if kind, ok := item.OneOf(clockKinds...); ok {
				s.Kinds = append(s.Kinds, kind)
			}
		}
	}
	for _, d := range []struct {
		key         string
		to          *time.Duration
		least, most time.Duration
	}{
		{"min_size", &s.MinSize, time.Millisecond, time.Hour},
		{"every", &s.Every, 100 * time.Millisecond, 24 * time.Hour},
		{"timeout", &s.Timeout, 100 * time.Millisecond, 10 * time.Minute},
	} {
		if v, ok := o.Get(d.key); ok {
			if length, ok := v.Duration(d.least, d.most); ok {
				*d.to = length
			}
		}
	}
	o.Done()
	return s
}

func (b *builder) webhook(v tree.Value) string {
	s, ok := b.secret(v)
	if !ok {
		return ""
	}
	if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		v.Fail("not an http or https address with a host", "write https://HOST/PATH, or file:PATH of a file that holds it")
		return ""
	}
	return s
}

// redacted shows who is told, without arguments and without the path of an address: both
// may hold secrets.
func (c *Clock) redacted() any {
	out := map[string]any{"suspend_credit": !c.IgnoreSuspend}
	if c.Warning > 0 {
		out["warning"] = c.Warning.String()
	}
	if c.Critical > 0 {
		out["critical"] = c.Critical.String()
	}
	switch s := c.OnStep; {
	case s == nil:
	case len(s.Exec) > 0:
		out["on_step"] = map[string]string{"exec": s.Exec[0]}
	default:
		host := ""
		if u, err := url.Parse(s.Webhook); err == nil {
			host = u.Host
		}
		out["on_step"] = map[string]string{"webhook": host}
	}
	return out
}
