package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func bank(t testing.TB) []Case {
	t.Helper()
	f, err := os.Open("../../../testdata/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cs, err := Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// TestBank runs the bank on the in-memory store: nothing fails, and what is skipped needs
// what one process does not have.
func TestBank(t *testing.T) {
	cs := bank(t)
	if len(cs) != 109 {
		t.Fatalf("%d cases, want 109", len(cs))
	}
	done := 0
	r, err := Run(t.Context(), cs, Memory{}, func(n int) {
		if done++; n != done {
			t.Errorf("told of %d, want %d", n, done)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Failed {
		t.Error(r.Failed[i].String())
	}
	var skipped []string
	for _, s := range r.Skipped {
		skipped = append(skipped, s.ID)
		if s.Reason == "" {
			t.Errorf("%s is skipped without a reason", s.ID)
		}
	}
	const want = "B12 B50 B57 B59 B60 B61 B62 B63 B64 B95 B96 B97 B122 B124 B125"
	if got := strings.Join(skipped, " "); got != want {
		t.Errorf("skipped %s\nwant    %s", got, want)
	}
	if r.Cases != 109 || r.Passed+len(r.Failed)+len(r.Skipped) != 109 || done != 109 {
		t.Errorf("%d cases, %d passed, %d failed, %d skipped, told of %d", r.Cases, r.Passed, len(r.Failed), len(r.Skipped), done)
	}
}

// TestEveryExpectationIsChecked changes the expectations of the bank one at a time: each
// change must be found. A case whose limit is rightly refused expects nothing else.
func TestEveryExpectationIsChecked(t *testing.T) {
	changed := 0
	for _, c := range bank(t) {
		if c.cannot(Memory{}) != "" || !c.numeric() || rejected(&c) {
			continue
		}
		if f, err := c.runEvents(t.Context(), Memory{}); err != nil || len(f) > 0 {
			t.Fatal(c.ID, f, err)
		}
		for i := range c.Expect {
			for field, e := range wrong(&c.Expect[i]) {
				d := c
				d.Expect = slices.Clone(c.Expect)
				d.Expect[i] = e
				f, err := d.runEvents(t.Context(), Memory{})
				if err != nil {
					t.Fatal(err)
				}
				if changed++; len(f) == 0 || f[0].Event != i || !strings.HasPrefix(f[0].Field, field) {
					t.Errorf("%s event %d: another %s went unnoticed: %v", c.ID, i, field, f)
				}
			}
		}
		if b := c.ExpectTotal; b != nil {
			over := *b.Max + 1
			d := c
			d.ExpectTotal = &Bounds{Min: &over}
			if f, err := d.runEvents(t.Context(), Memory{}); err != nil || len(f) != 1 || f[0].Field != "expect_total.min" {
				t.Errorf("%s: expect_total went unnoticed: %v %v", c.ID, f, err)
			}
		}
	}
	if changed < 600 {
		t.Errorf("only %d expectations were changed", changed)
	}
}

func rejected(c *Case) bool {
	if !c.ConfigRejectOK {
		return false
	}
	_, err := c.Limit.compile("x", c.Algorithm)
	return err != nil
}

// wrong is the expectation with one field changed, for each that it has.
func wrong(e *Expect) map[string]Expect {
	out := map[string]Expect{}
	number := func(field string, get func(*Expect) **int64) {
		if p := *get(e); p != nil {
			x := *e
			n := *p + 1
			*get(&x) = &n
			out[field] = x
		}
	}
	number("allowed_count", func(e *Expect) **int64 { return &e.AllowedCount })
	number("remaining", func(e *Expect) **int64 { return &e.Remaining })
	number("retry_after_s", func(e *Expect) **int64 { return &e.RetryAfterS })
	number("wait_ms", func(e *Expect) **int64 { return &e.WaitMS })
	if e.Allowed != nil {
		x, b := *e, !*e.Allowed
		x.Allowed = &b
		out["allowed"] = x
	}
	if e.RetryAfterMS.Set {
		x := *e
		x.RetryAfterMS = Wait{Set: true, MS: e.RetryAfterMS.MS + 1}
		out["retry_after_ms"] = x
	}
	if e.ResetAfterMS.Set {
		x := *e
		x.ResetAfterMS.MS--
		out["reset_after_ms"] = x
	}
	if e.Error != nil {
		x, s := *e, "another"
		x.Error = &s
		out["error"] = x
	}
	if e.DeniedBy != nil {
		x := *e
		x.DeniedBy = &[]string{"another"}
		out["denied_by"] = x
	}
	for name := range e.RemainingBy {
		x := *e
		x.RemainingBy = map[string]int64{name: -1}
		out["remaining_by."+name] = x
	}
	return out
}

// TestSentences changes what a sentence is about, so that it does not hold.
func TestSentences(t *testing.T) {
	by := map[string]Case{}
	for _, c := range bank(t) {
		by[c.ID] = c
	}
	find := func(id string, change func(*Case)) string {
		c := by[id]
		c.Events = slices.Clone(c.Events)
		change(&c)
		found, err := c.sentence()(t.Context(), &c, Memory{})
		if err != nil {
			t.Fatal(id, err)
		}
		return found
	}
	if s := find("B38", func(c *Case) { c.Events[1].Cost = Cost{Units: 3, Set: true} }); s == "" {
		t.Error("B38: a valid cost passes for an invalid one")
	}
	if s := find("B92", func(c *Case) { c.Events[2].Path = "/other" }); s == "" {
		t.Error("B92: a third request that is not refused goes unnoticed")
	}
	if s := find("B102", func(c *Case) { c.Events[2].Config = "" }); s == "" {
		t.Error("B102: a window that stays long goes unnoticed")
	}
}

func TestCancelBeforeItsTurn(t *testing.T) {
	r := runText(t, `{"id":"a","algorithm":"token_bucket","store":"memory","limit":{"capacity":2,"refill_tokens":1,"refill_period_ms":1000},
		"events":[{"t_ms":0,"op":"allow","cost":2},{"t_ms":0,"op":"wait","cancel_after_ms":400},{"t_ms":100,"op":"peek"},{"t_ms":1000,"op":"peek"}],
		"expect":[{"allowed":true},{"allowed":false,"error":"canceled"},{"remaining":0},{"remaining":1}]}`)
	if r.Passed != 1 {
		t.Errorf("%+v", r)
	}
}

// TestBackwardMonotonic steps the one clock that the store does read: it takes and gives
// nothing, for every algorithm.
func TestBackwardMonotonic(t *testing.T) {
	for alg, limit := range map[string]string{
		"token_bucket":   `{"capacity":3,"refill_tokens":1,"refill_period_ms":1000}`,
		"gcra":           `{"burst":3,"count":1,"period_ms":1000}`,
		"fixed_window":   `{"count":3,"window_ms":1000}`,
		"sliding_window": `{"count":3,"window_ms":1000,"variant":"log"}`,
	} {
		r := runText(t, fmt.Sprintf(`{"id":"a","algorithm":%q,"limit":%s,"events":[{"t_ms":0,"times":2},{"t_ms":900,"mono_offset_ms":-700},
			{"t_ms":950,"mono_offset_ms":-900},{"t_ms":999,"mono_offset_ms":-999,"clock_offset_ms":99999999}],
			"expect":[{"allowed_count":2},{"allowed":true,"remaining":0},{"allowed":false},{"allowed":false}]}`, alg, limit))
		if r.Passed != 1 {
			t.Errorf("%s: %+v", alg, r)
		}
	}
}

func runText(t *testing.T, lines string) *Report {
	t.Helper()
	cs, err := Parse(strings.NewReader(strings.ReplaceAll(lines, "\n", " ")))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), cs, Memory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSkips(t *testing.T) {
	for _, x := range []struct{ line, want string }{
		{`{"id":"a","events":[{"t_ms":0}]}`, "nothing that could be checked"},
		{`{"id":"a","events":[{"t_ms":0}],"expect":[{"allowed":true}]}`, "names no limit"},
		{`{"id":"a","events":[{"t_ms":0}],"expect_text":"All is well."}`, "no check is written"},
		{`{"id":"a","store":"redis","events":[{"t_ms":0}],"expect_text":"All is well."}`, "needs a Redis server"},
		{`{"id":"a","algorithm":"sliding_window","limit":{"count":65,"window_ms":1000,"variant":"log"},"events":[{"t_ms":0}],"expect":[{"allowed":true}]}`, "exact log"},
		{`{"id":"a","events":[{"t_ms":0,"op":"failover"}],"expect":[{"allowed":true}]}`, "real store fault"},
	} {
		r := runText(t, x.line)
		if len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, x.want) {
			t.Errorf("%s: %+v, want %s", x.line, r, x.want)
		}
	}
}

func TestFailures(t *testing.T) {
	for _, x := range []struct{ line, want string }{
		{`{"id":"a","algorithm":"leaky","limit":{},"events":[{"t_ms":0}],"expect":[{"allowed":true}]}`, "unknown algorithm"},
		{`{"id":"a","algorithm":"fixed_window","limit":{"count":0,"window_ms":5},"events":[{"t_ms":0}],"expect":[{"allowed":true}]}`, "not positive"},
		{`{"id":"a","algorithm":"fixed_window","limit":{"count":1,"window_ms":1,"calendar":"decade"},"events":[{"t_ms":0}],"expect":[{"allowed":true}]}`, "want day, week or month"},
		{`{"id":"a","algorithm":"fixed_window","limit":{"count":1,"window_ms":5},"events":[{"t_ms":1125899906842624}],"expect":[{"allowed":true}]}`, "2112"},
		{`{"id":"a","algorithm":"fixed_window","limit":{"count":1,"window_ms":5},"events":[{"t_ms":0},{"t_ms":0}],"expect":[{"allowed":true,"remaining":1},{"allowed":true}]}`, "remaining: want 1, got 0 (and 1 more)"},
		{`{"id":"a","algorithm":"fixed_window","limit":{"count":1,"window_ms":5},"events":[{"t_ms":0},{"t_ms":1,"op":"reconfigure","limit":{"count":-1,"window_ms":5}}],"expect":[{},{"remaining":1}]}`, "not positive"},
		{`{"id":"a","limits":[{"name":"x","algorithm":"fixed_window","count":1,"window_ms":5}],"events":[{"t_ms":0,"op":"reserve","id":"r","keys":{"x":"k"}}],"expect":[{"allowed":true}]}`, "allowed: want true, got false"},
	} {
		r := runText(t, x.line)
		if len(r.Failed) != 1 || !strings.Contains(r.Failed[0].String(), x.want) {
			t.Errorf("%s: %+v, want %s", x.line, r, x.want)
		}
	}
}

func TestMistakesInFiles(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{"", "no case in the file"},
		{"# only a remark\n\n", "no case in the file"},
		{"time,key\n", "line 1: not a JSON object"},
		{`{"id":"a","events":[{"t_ms":0}]}` + "\n" + `{"id":"a","events":[{"t_ms":0}]}`, `line 2: id "a" is used on line 1 too`},
		{`{"id":"a","events":[{"t_ms":0,"op":"alow"}]}`, `line 1: event 0: unknown op "alow", want one of allow,`},
		{`{"id":"a","events":[{"t_ms":0},{"t_ms":5},{"t_ms":4}]}`, "line 1: event 2: t_ms 4 is before"},
		{`{"id":"a","events":[{"t_ms":-1}]}`, "event 0:"},
		{`{"id":"a","events":[{"t_ms":"0"}]}`, "line 1: events.t_ms: string where a whole number below 2^63 is wanted"},
		{`{"id":"a","events":[{"t_ms":1.5}]}`, "events.t_ms"},
		{`{"id":"a","events":{"t_ms":1}}`, "object where a list is wanted"},
		{`{"id":"a","events":[{"t_ms":0}],"expect":[]`, "not JSON: unexpected end of JSON input"},
		{`{"id":"a","events":[{"t_ms":0}],"expect":[{},{}]}`, "2 expectations for 1 events"},
		{`{"id":"a","events":[{"t_ms":0}],"expect":[{"alowed":true}]}`, `unknown field "alowed"`}, //nolint:misspell // the typing error is refused
		{`{"id":"a","events":[{"t_ms":0}],"expect":[{"remaining":"2"}]}`, "string where a whole number"},
		{`{"events":[{"t_ms":0}]}`, `no "id"`},
		{`{"id":"a"}`, "no events"},
		{`{"id":"a","events":[{"t_ms":0,"times":0}]}`, "times 0, want at least 1"},
		{`{"id":"a","events":[{"t_ms":0,"times":100000001}]}`, "more than 100000000 attempts"},
		{`{"id":"a","events":[{"t_ms":0,"times":1000000,"every_ms":1125899906842624}]}`, "out of range"},
		{`{"id":"a","events":[{"t_ms":0,"clock_offset_ms":9223372036854775807}]}`, "clock_offset_ms 9223372036854775807 is out of range"},
		{`{"id":"a","events":[{"t_ms":0,"captured_now_ms":5}]}`, "captured_now_ms 5"},
		{`{"id":"a","events":[{"t_ms":0,"op":"reserve"}]}`, "reserve without an id"},
		{`{"id":"a","events":[{"t_ms":0,"op":"reconfigure"}]}`, "reconfigure without a limit"},
		{`{"id":"a","events":[{"t_ms":5,"op":"suspend","until_ms":1}]}`, "until_ms 1 is before"},
		{`{"id":"a","events":[{"t_ms":0,"op":"wait","ctx":"x"}]}`, `ctx "x"`},
		{`{"id":"a","events":[{"t_ms":0,"keys":{"x":"k"}}]}`, `a limit "x" that the case does not have`},
		{`{"id":"a","limit":{"ident":{}},"events":[{"t_ms":0,"peer":"here"}]}`, `peer "here" is not an address`},
		{`{"id":"a","limit":{"ident":{"trusted_proxies":["10/8"]}},"events":[{"t_ms":0}]}`, `"10/8" is not a prefix`},
		{`{"id":"a","limit":{"ident":{"ipv6_prefix":129}},"events":[{"t_ms":0}]}`, "ipv6_prefix 129"},
		{"{\"id\":\"\xff\",\"events\":[{\"t_ms\":0}]}", "not UTF-8"},
		{`{"id":"` + strings.Repeat("x", maxLine) + `"}`, "line 1: longer than 4194304 bytes"},
	} {
		_, err := Parse(strings.NewReader(x.in))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%.100s: %v, want %s", x.in, err, x.want)
		}
	}
	cs, err := Parse(strings.NewReader("\ufeff# a remark\n\n" + `{"id":"a","events":[{"t_ms":0}]}` + "\r\n"))
	if err != nil || len(cs) != 1 || cs[0].Line != 3 {
		t.Errorf("%+v, %v", cs, err)
	}
}

// TestEveryMistakeAtOnce reports mistakes of several lines together, but not without end.
func TestEveryMistakeAtOnce(t *testing.T) {
	_, err := Parse(strings.NewReader(strings.Repeat("x\n", 1000)))
	if n := strings.Count(err.Error(), "line "); n != maxProblems {
		t.Errorf("%d mistakes reported, want %d", n, maxProblems)
	}
}

func TestReport(t *testing.T) {
	r := runText(t, `{"id":"good","algorithm":"fixed_window","limit":{"count":1,"window_ms":5},"events":[{"t_ms":0}],"expect":[{"allowed":true}]}`)
	b, err := json.Marshal(r)
	if err != nil || string(b) != `{"cases":1,"passed":1,"failed":[],"skipped":[]}` {
		t.Errorf("%s, %v", b, err)
	}
	r = runText(t, `{"id":"bad","algorithm":"gcra","limit":{"burst":1,"count":1,"period_ms":1000},"events":[{"t_ms":0,"cost":2}],"expect":[{"retry_after_ms":7}]}`)
	b, err = json.Marshal(r)
	if err != nil || string(b) != `{"cases":1,"passed":0,"failed":[{"id":"bad","event":0,"field":"retry_after_ms","want":7,"got":null}],"skipped":[]}` {
		t.Errorf("%s, %v", b, err)
	}
	r.Skipped = []Skip{{"x", "no reason"}, {"y", "another"}, {"z", "no reason"}}
	var w bytes.Buffer
	if err := r.Text(&w); err != nil {
		t.Fatal(err)
	}
	const want = "1 cases: 0 passed, 1 failed, 3 skipped\n\nfailed\n  bad: event 0: retry_after_ms: want 7, got never\n\nskipped\n  x, z: no reason\n  y: another\n"
	if w.String() != want {
		t.Errorf("%s", w.String())
	}
}

func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, bank(t), Memory{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
}

// FuzzParse reads anything without a panic; what it accepts can be run.
func FuzzParse(f *testing.F) {
	in, err := os.ReadFile("../../../testdata/cases.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(in) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		cs, err := Parse(bytes.NewReader(line))
		if err != nil {
			return
		}
		for i := range cs {
			c := &cs[i]
			var attempts int64
			for j := range c.Events {
				attempts += c.Events[j].Times
			}
			if attempts > 10_000 || !c.numeric() || c.cannot(Memory{}) != "" {
				continue
			}
			if _, err := c.runEvents(t.Context(), Memory{}); err != nil {
				t.Error(err)
			}
		}
	})
}
