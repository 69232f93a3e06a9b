package cases

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Report is what came of a file of cases. Every case is in exactly one of Passed, Failed
// and Skipped.
type Report struct {
	Cases   int       `json:"cases"`
	Passed  int       `json:"passed"`
	Failed  []Failure `json:"failed"`
	Skipped []Skip    `json:"skipped"`
}

// Failure is a case that was answered wrongly.
type Failure struct {
	ID    string `json:"id"`
	Event int    `json:"event"` // from 0; -1 for the case as a whole
	Field string `json:"field"`
	Want  any    `json:"want"`
	Got   any    `json:"got"`
	More  int    `json:"more,omitempty"` // further differences in the same case
}

func (f *Failure) String() string {
	where := fmt.Sprintf("event %d", f.Event)
	if f.Event < 0 {
		where = "case"
	}
	s := fmt.Sprintf("%s: %s: %s: want %s, got %s", f.ID, where, f.Field, show(f.Want), show(f.Got))
	if f.More > 0 {
		s += fmt.Sprintf(" (and %d more)", f.More)
	}
	return s
}

// Skip is a case that was not run.
type Skip struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case Wait:
		if v.Never {
			return "never"
		}
		return fmt.Sprint(v.MS)
	}
	return fmt.Sprint(v)
}

// answer is what came of an event; a nil field has no value there.
type answer struct {
	allowed     *bool
	count       *int64
	remaining   *int64
	retry       *Wait
	retryS      *int64
	reset       *Wait
	wait        *int64
	err         string
	deniedBy    []string
	remainingBy map[string]int64
}

// differ lists where an answer is not what was expected.
func (c *Case) differ(i int, a *answer) []Failure {
	e := &c.Expect[i]
	var out []Failure
	bad := func(field string, want, got any) {
		out = append(out, Failure{ID: c.ID, Event: i, Field: field, Want: want, Got: got})
	}
	same(bad, "allowed", e.Allowed, a.allowed)
	same(bad, "allowed_count", e.AllowedCount, a.count)
	same(bad, "remaining", e.Remaining, a.remaining)
	same(bad, "wait_ms", e.WaitMS, a.wait)
	if !c.saturated(e.RetryAfterMS, a.retry) {
		c.sameWait(bad, "retry_after_ms", e.RetryAfterMS, a.retry)
		same(bad, "retry_after_s", e.RetryAfterS, a.retryS)
	}
	c.sameWait(bad, "reset_after_ms", e.ResetAfterMS, a.reset)
	if e.Error != nil && *e.Error != a.err {
		bad("error", *e.Error, orNil(a.err))
	}
	if e.Error == nil && strings.HasPrefix(a.err, "store: ") {
		bad("error", nil, a.err)
	}
	if e.DeniedBy != nil {
		want, got := slices.Sorted(slices.Values(*e.DeniedBy)), slices.Sorted(slices.Values(a.deniedBy))
		if !slices.Equal(want, got) {
			bad("denied_by", want, got)
		}
	}
	for _, name := range slices.Sorted(keysOf(e.RemainingBy)) {
		got, ok := a.remainingBy[name]
		if want := e.RemainingBy[name]; !ok {
			bad("remaining_by."+name, want, nil)
		} else if got != want {
			bad("remaining_by."+name, want, got)
		}
	}
	return out
}

func keysOf(m map[string]int64) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func same[T comparable](bad func(string, any, any), field string, want, got *T) {
	switch {
	case want == nil:
	case got == nil:
		bad(field, *want, nil)
	case *want != *got:
		bad(field, *want, *got)
	}
}

// saturation is the longest wait that a limiter may be unable to exceed: 2^63-1 ns in ms.
const saturation = 9_223_372_036_854

// saturated reports whether a wait may be shorter than the true one, and is as long as
// waits get.
func (c *Case) saturated(want Wait, got *Wait) bool {
	return c.SaturateOK && got != nil && want.MS >= saturation && (got.Never || got.MS >= saturation)
}

func (c *Case) sameWait(bad func(string, any, any), field string, want Wait, got *Wait) {
	switch {
	case !want.Set:
	case got == nil:
		bad(field, want, nil)
	case want.Never != got.Never || want.MS != got.MS:
		bad(field, want, *got)
	}
}

// Text writes the report for people: failures one a line, skipped cases by reason.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cases: %d passed, %d failed, %d skipped\n", r.Cases, r.Passed, len(r.Failed), len(r.Skipped))
	if len(r.Failed) > 0 {
		b.WriteString("\nfailed\n")
	}
	for i := range r.Failed {
		fmt.Fprintf(&b, "  %s\n", r.Failed[i].String())
	}
	if len(r.Skipped) > 0 {
		b.WriteString("\nskipped\n")
	}
	var reasons []string
	by := map[string][]string{}
	for _, s := range r.Skipped {
		if by[s.Reason] == nil {
			reasons = append(reasons, s.Reason)
		}
		by[s.Reason] = append(by[s.Reason], s.ID)
	}
	for _, reason := range reasons {
		fmt.Fprintf(&b, "  %s: %s\n", strings.Join(by[reason], ", "), reason)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
