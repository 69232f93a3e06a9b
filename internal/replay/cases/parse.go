package cases

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a file.
const (
	maxLine     = 4 << 20     // bytes
	maxCases    = 100_000     //
	maxEvents   = 100_000     // of one case
	maxAttempts = 100_000_000 // of one case: events with times counted out
	maxProblems = 20          // reported of one file
	maxTime     = 1 << 50     // ms from the start of a case
	maxOffset   = 1 << 41     // ms that a clock can be off: 70 years
)

// ops are what an event can be, and why a store in the memory of this process cannot do
// it; empty if it can.
var ops = map[string]string{
	"allow": "", "peek": "", "credit": "", "reserve": "", "cancel": "", "wait": "",
	"reconfigure": "", "reload_same": "", "suspend": "", "note": "",
	"flush": "", "cleanup": "", // an exact store has nothing to flush; its own sweep is the clean-up
	"script_flush":    "needs a real store fault: a server that loses its scripts",
	"store_restart":   "needs a real store fault: a server that restarts",
	"store_pause":     "needs a real store fault: a server that does not answer",
	"failover":        "needs a real store fault: a failover to a replica",
	"slot_move":       "needs a real store fault: a cluster that moves a slot",
	"partition_start": "needs a real store fault: a cut network",
	"partition_end":   "needs a real store fault: a cut network",
	"node_restart":    "needs several processes, one of which restarts",
}

// cannotDo is why a store in the memory of this process cannot do an operation, or show a
// fault by its name; empty if it can.
func cannotDo(op string) string {
	if reason, known := ops[op]; known {
		return reason
	}
	return "needs a real store fault: " + op
}

// LineError is a mistake in a file.
type LineError struct {
	Line    int
	Problem string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// Parse reads a file of cases, one JSON object a line; empty lines and lines that begin
// with # are skipped. The error joins the mistakes found, each a *LineError.
func Parse(r io.Reader) ([]Case, error) {
	var cases []Case
	var errs []error
	seen := map[string]int{}
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	line := 0
	for in.Scan() && len(errs) < maxProblems {
		line++
		text := bytes.TrimSpace(in.Bytes())
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		c, err := parseCase(text)
		if err == nil && seen[c.ID] != 0 {
			err = fmt.Errorf("id %q is used on line %d too", c.ID, seen[c.ID])
		}
		if err == nil && len(cases) == maxCases {
			return nil, &LineError{line, fmt.Sprintf("more than %d cases; split the file", maxCases)}
		}
		if err != nil {
			errs = append(errs, &LineError{line, err.Error()})
			continue
		}
		c.Line, seen[c.ID] = line, line
		cases = append(cases, *c)
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		errs = append(errs, &LineError{line + 1, fmt.Sprintf("longer than %d bytes; is this a file of cases, one JSON object a line?", maxLine)})
	case err != nil:
		errs = append(errs, &LineError{line + 1, err.Error()})
	}
	if len(cases) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("no case in the file; see docs/reference/cases.md for the format"))
	}
	return cases, errors.Join(errs...)
}

func parseCase(text []byte) (*Case, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	if text[0] != '{' {
		return nil, errors.New("not a JSON object")
	}
	var c Case
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, explain(err)
	}
	if c.ID == "" {
		return nil, errors.New(`no "id"`)
	}
	if err := c.parseExpect(); err != nil {
		return nil, err
	}
	return &c, c.check()
}

// explain rewords what encoding/json says for readers who do not know Go.
func explain(err error) error {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		want := map[string]string{"int64": "a whole number below 2^63", "int": "a whole number", "string": "a text", "bool": "true or false"}[t.Type.String()]
		if want == "" {
			want = "another type"
			if k := t.Type.Kind().String(); k == "slice" {
				want = "a list"
			} else if k == "struct" || k == "map" {
				want = "an object"
			}
		}
		return fmt.Errorf("%s: %s where %s is wanted", t.Field, t.Value, want)
	}
	var s *json.SyntaxError
	if errors.As(err, &s) {
		return fmt.Errorf("not JSON: %w at byte %d", s, s.Offset)
	}
	return err
}

// parseExpect reads expectations strictly: one that is not understood would otherwise
// pass unchecked.
func (c *Case) parseExpect() error {
	if len(c.RawExpect) == 0 || string(c.RawExpect) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(c.RawExpect))
	d.DisallowUnknownFields()
	if err := d.Decode(&c.Expect); err != nil {
		return fmt.Errorf("expect: %w", explain(err))
	}
	c.RawExpect = nil
	if len(c.Expect) != 0 && len(c.Expect) != len(c.Events) {
		return fmt.Errorf("%d expectations for %d events; want one each, {} where nothing is expected", len(c.Expect), len(c.Events))
	}
	return nil
}

func (c *Case) check() error {
	if len(c.Events) == 0 {
		return errors.New("no events")
	}
	if len(c.Events) > maxEvents {
		return fmt.Errorf("%d events, want at most %d", len(c.Events), maxEvents)
	}
	var attempts int64
	last := int64(0)
	for i := range c.Events {
		e := &c.Events[i]
		if err := c.checkEvent(e, last); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		last = e.TMS
		if attempts += e.Times; attempts > maxAttempts {
			return fmt.Errorf("event %d: more than %d attempts in one case", i, maxAttempts)
		}
	}
	for _, l := range append(slices.Clone(c.Limits), deref(c.Limit)...) {
		if l.Ident == nil {
			continue
		}
		if l.Ident.IPv6Prefix < 0 || l.Ident.IPv6Prefix > 128 {
			return fmt.Errorf("ident: ipv6_prefix %d, want 0 to 128", l.Ident.IPv6Prefix)
		}
		for _, p := range l.Ident.TrustedProxies {
			if _, err := netip.ParsePrefix(p); err != nil {
				return fmt.Errorf("ident: trusted_proxies: %q is not a prefix such as 10.0.0.0/8", p)
			}
		}
	}
	return nil
}

func deref(l *Limit) []Limit {
	if l == nil {
		return nil
	}
	return []Limit{*l}
}

func (c *Case) checkEvent(e *Event, last int64) error {
	if e.Op == "" {
		e.Op = "allow"
	}
	if _, ok := ops[e.Op]; !ok {
		known := make([]string, 0, len(ops))
		for op := range ops {
			known = append(known, op)
		}
		slices.Sort(known)
		return fmt.Errorf("unknown op %q, want one of %s", e.Op, strings.Join(known, ", "))
	}
	e.Times = 1
	if e.RawTimes != nil {
		e.Times = *e.RawTimes
	}
	if e.Times < 1 {
		return fmt.Errorf("times %d, want at least 1", e.Times)
	}
	if !e.Cost.Set {
		e.Cost = Cost{Units: 1, Set: true}
	}
	if e.TMS < last {
		return fmt.Errorf("t_ms %d is before that of the event above; events are in order of true time", e.TMS)
	}
	for name, v := range map[string]int64{"t_ms": e.TMS, "times": e.Times, "every_ms": e.EveryMS, "until_ms": e.UntilMS} {
		if v < 0 || v > maxTime {
			return fmt.Errorf("%s %d is out of range", name, v)
		}
	}
	if end := e.Times; end > maxTime/max(1, e.EveryMS) {
		return fmt.Errorf("times %d every %d ms is out of range", e.Times, e.EveryMS)
	}
	for name, v := range map[string]int64{"clock_offset_ms": e.ClockMS, "mono_offset_ms": e.MonoMS, "store_offset_ms": e.StoreClockMS} {
		if v < -maxOffset || v > maxOffset {
			return fmt.Errorf("%s %d is out of range", name, v)
		}
	}
	if c := e.CapturedMS; c != nil && (*c < 0 || *c > e.TMS) {
		return fmt.Errorf("captured_now_ms %d, want 0 to t_ms", *c)
	}
	switch {
	case e.Op == "suspend" && e.UntilMS < e.TMS:
		return fmt.Errorf("until_ms %d is before t_ms", e.UntilMS)
	case e.Op == "reconfigure" && e.Limit == nil:
		return errors.New("reconfigure without a limit")
	case (e.Op == "reserve" || e.Op == "cancel") && e.ID == "":
		return fmt.Errorf("%s without an id", e.Op)
	case e.Op == "wait" && e.Ctx != "" && e.Ctx != "canceled":
		return fmt.Errorf("ctx %q, want canceled or none", e.Ctx)
	case e.Peer != "" && c.Limit != nil && c.Limit.Ident != nil && !validAddr(e.Peer):
		return fmt.Errorf("peer %q is not an address", e.Peer)
	}
	for name := range e.Keys {
		if !slices.ContainsFunc(c.Limits, func(l Limit) bool { return l.Name == name }) {
			return fmt.Errorf("keys names a limit %q that the case does not have", name)
		}
	}
	return nil
}

func validAddr(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}
