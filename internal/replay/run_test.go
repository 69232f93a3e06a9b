package replay

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/replay/trace"
	"github.com/escapement-io/escapement/memstore"
)

// replayed runs a trace in text through sets of limits in one line each.
func replayed(t testing.TB, text string, o Options, sets ...[]string) (*Report, error) {
	t.Helper()
	r, err := trace.Open(strings.NewReader(text), trace.Auto)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := r.Shape.Layout(trace.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	var all []Set
	for i, specs := range sets {
		s := Set{Name: fmt.Sprint("set ", i)}
		for j, spec := range specs {
			s.Limits = append(s.Limits, Counted{Plan: plan(t, fmt.Sprintf("l%d", j), spec)})
		}
		all = append(all, s)
	}
	return Run(t.Context(), r, layout, all, o)
}

func plan(t testing.TB, name, spec string) *escapement.Plan {
	t.Helper()
	spec, shadow := strings.CutPrefix(spec, "shadow ")
	l, err := ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	l.Name, l.Shadow = name, shadow
	p, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// request is one line of a random trace.
type request struct {
	at, cost int64
	key      string
}

// traffic is bursts with pauses, from a few keys.
func traffic(seed uint64, n int) []request {
	r := rand.New(rand.NewPCG(seed, 0))
	at := int64(1_800_000_000_000_000)
	out := make([]request, n)
	for i := range out {
		switch r.IntN(20) {
		case 0:
			at += r.Int64N(30_000_000)
		case 1, 2, 3:
			at += r.Int64N(500_000)
		}
		out[i] = request{at, 1 + r.Int64N(3)*r.Int64N(2), string(rune('a' + r.IntN(3)))}
	}
	return out
}

func text(requests []request) string {
	var b strings.Builder
	for _, q := range requests {
		fmt.Fprintf(&b, "%d,%s,%d\n", q.at, q.key, q.cost)
	}
	return b.String()
}

var tried = []string{
	"token_bucket 5/1s burst 8", "token_bucket 7/3s burst 20", "gcra 3/1s burst 5", "fixed_window 6/2s",
	"fixed_window 6/2s align first_use", "fixed_window 40 align day", "sliding_window 10/2s",
	"rolling_window 9/2s", "rolling_window 80/5s buckets 16", "pacing 4/1s max_delay 900ms",
}

// scripted is the clock of a store that is where the trace is.
type scripted struct{ now algo.Store }

func (s *scripted) Now() algo.Store { return s.now }

// TestSameAsStore decides every request of random traces on an in-memory store as well:
// the sums are the same, for each limit alone and for pairs with and without a shadow.
func TestSameAsStore(t *testing.T) {
	var sets [][]string
	for i, spec := range tried {
		other := tried[(i+3)%len(tried)]
		sets = append(sets, []string{spec}, []string{spec, other}, []string{spec, "shadow " + other})
	}
	for seed := uint64(1); seed <= 4; seed++ {
		requests := traffic(seed, 2000)
		r, err := replayed(t, text(requests), Options{}, sets...)
		if err != nil {
			t.Fatal(err)
		}
		for i, specs := range sets {
			admitted, refusals := onStore(t, specs, requests)
			s := &r.Sets[i]
			if s.Admitted != admitted || s.Admitted+s.Refused != int64(len(requests)) {
				t.Errorf("seed %d, %q: admitted %d and refused %d, the store admits %d", seed, specs, s.Admitted, s.Refused, admitted)
			}
			for j := range specs {
				if got := s.Limits[j].Refused; got != refusals[j] {
					t.Errorf("seed %d, %q, limit %d: refused %d, the store %d", seed, specs, j, got, refusals[j])
				}
			}
			if s.Refused == 0 && !strings.Contains(fmt.Sprint(specs), "80/5s") {
				t.Errorf("seed %d, %q: nothing was refused, the test shows nothing", seed, specs)
			}
		}
	}
}

func onStore(t *testing.T, specs []string, requests []request) (admitted int64, refusals []int64) {
	t.Helper()
	c := &scripted{now: algo.Store(requests[0].at)}
	store := memstore.New(memstore.WithClock(c))
	store.Close() // nothing is swept: the clock is not for other goroutines
	uses := make([]escapement.Use, len(specs))
	for i, spec := range specs {
		uses[i].Limiter = escapement.NewLimiter(store, plan(t, fmt.Sprintf("l%d", i), spec))
	}
	refusals = make([]int64, len(specs))
	for _, q := range requests {
		c.now = algo.Store(q.at)
		for i := range uses {
			uses[i].Key, uses[i].Cost = q.key, q.cost
		}
		ok, parts, err := escapement.TakeAll(context.Background(), uses...)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			admitted++
		}
		for i := range parts {
			if !parts[i].Allowed {
				refusals[i]++
			}
		}
	}
	return admitted, refusals
}

// TestEnough replays with what the report says is enough, and with one less: the first
// refuses nobody, the second somebody.
func TestEnough(t *testing.T) {
	with := func(spec string, field string, n int64) string {
		words := strings.Fields(spec)
		_, per, found := strings.Cut(words[1], "/")
		switch {
		case field == "burst":
			return fmt.Sprintf("%s %s burst %d", words[0], words[1], n)
		case found:
			words[1] = fmt.Sprintf("%d/%s", n, per)
		default:
			words[1] = fmt.Sprint(n)
		}
		return strings.Join(words, " ")
	}
	known := 0
	for seed := uint64(1); seed <= 6; seed++ {
		in := text(traffic(seed, 1000))
		for _, spec := range tried {
			r, err := replayed(t, in, Options{}, []string{spec})
			if err != nil {
				t.Fatal(err)
			}
			e := r.Sets[0].Limits[0].Enough
			if e == nil {
				if !strings.HasPrefix(spec, "pacing") && spec != "rolling_window 9/2s" {
					t.Errorf("seed %d, %s: not known what is enough", seed, spec)
				}
				continue
			}
			known++
			for _, less := range []int64{0, 1} {
				tight := with(spec, e.Field, e.Value-less)
				if strings.HasPrefix(spec, "rolling") && e.Value-less <= algo.LogMax {
					continue // decided by a log, which is tighter than a ring
				}
				again, err := replayed(t, in, Options{}, []string{tight})
				if err != nil {
					t.Fatal(err)
				}
				if refused := again.Sets[0].Refused; (refused > 0) != (less > 0) {
					t.Errorf("seed %d, %s: a %s of %d is said to be enough; %s refuses %d", seed, spec, e.Field, e.Value, tight, refused)
				}
			}
		}
	}
	if known == 0 {
		t.Error("nothing was known")
	}
}

func TestInputIsTold(t *testing.T) {
	in := "time,key\n10,a\nx,a\n12,b\n11,a\n9.5,a\n13,b\n"
	r, err := replayed(t, in, Options{Top: 5}, []string{"fixed_window 1/100s"})
	if err != nil {
		t.Fatal(err)
	}
	g := r.Input
	if g.Lines != 7 || g.Requests != 5 || g.Broken != 1 || g.BrokenAt[0].Line != 3 || g.OutOfOrder != 2 ||
		g.BackMost != "2.5s" || g.OrderAt[0] != (Line{5, "1s before line 4"}) || g.Keys != 2 || g.Span() != 3*time.Second {
		t.Errorf("%+v", g)
	}
	l := r.Sets[0].Limits[0]
	if l.Refused != 3 || l.First.Line != 5 || l.First.Key != "a" || l.Last.Line != 7 || l.First.Time != "1970-01-01T00:00:12Z" {
		t.Errorf("%+v, first %+v", l, l.First)
	}
	if fmt.Sprint(l.Worst[0].Key, l.Worst[0].Refused, l.Worst[1].Key) != "a2b" || l.Enough.Value != 3 {
		t.Errorf("worst %+v, enough %+v", l.Worst, l.Enough)
	}
	if _, err := replayed(t, in, Options{Strict: true}, []string{"fixed_window 1/100s"}); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("strict: %v", err)
	}
	in = strings.Replace(in, "x,a\n", "", 1)
	if _, err := replayed(t, in, Options{Strict: true}, []string{"fixed_window 1/100s"}); err == nil || !strings.Contains(err.Error(), "line 4: 1s before line 3") {
		t.Errorf("strict: %v", err)
	}
}

// TestWorst compares the bounded heap with sorting everything.
func TestWorst(t *testing.T) {
	var b strings.Builder
	for k := range 50 {
		for range 1 + k*7%50 {
			fmt.Fprintf(&b, "1,key-%d\n", k)
		}
	}
	r, err := replayed(t, b.String(), Options{Top: 4}, []string{"fixed_window 1/1s"})
	if err != nil {
		t.Fatal(err)
	}
	l := r.Sets[0].Limits[0]
	got := fmt.Sprint(l.Worst[0].Refused, l.Worst[1].Refused, l.Worst[2].Refused, l.Worst[3].Refused, l.KeysRefused)
	if got != "49 48 47 46 49" || l.Worst[0].Key != "key-7" {
		t.Errorf("%s %+v", got, l.Worst)
	}
}

// TestSeries counts units per second, keeps peaks exact when steps grow wide, and draws.
func TestSeries(t *testing.T) {
	in := "100,a,5\n100.9,a,5\n101,a,3\n" + fmt.Sprintf("%d,a,20\n", 100+3*maxSteps) + fmt.Sprintf("%d,a,1\n", 101+3*maxSteps)
	r, err := replayed(t, in, Options{}, []string{"token_bucket 10/1s burst 30"})
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Input.Peak; p.Units != 20 || r.flow.width < 4 {
		t.Errorf("peak %+v, width %d", p, r.flow.width)
	}
	sum := int64(0)
	for _, units := range r.flow.steps[0] {
		sum += units
	}
	if sum != 34 {
		t.Errorf("%d units in the series, want 34", sum)
	}
	c := r.Chart()
	if len(c.Steps) != 2 || len(c.Levels) != 1 || c.Levels[0].Y != 10 || len(c.Steps[0].X) > maxPoints {
		t.Errorf("%d series of %d points, %d levels", len(c.Steps), len(c.Steps[0].X), len(c.Levels))
	}
	if err := c.Write(&bytes.Buffer{}, ".svg"); err != nil {
		t.Error(err)
	}
}

func TestSpecs(t *testing.T) {
	l, err := ParseSpec("fixed_window 1000 align week zone Europe/Berlin headroom 20 name x")
	if err != nil || l.Rate.Count != 1000 || l.Align != escapement.Week || l.Zone.String() != "Europe/Berlin" || l.Headroom != 20 || l.Name != "x" {
		t.Errorf("%+v, %v", l, err)
	}
	for text, want := range map[string]string{
		"":                              "an algorithm and a rate",
		"token_bucket":                  "an algorithm and a rate",
		"leaky 1/s":                     "unknown algorithm",
		"gcra x/s":                      "not a whole number",
		"gcra 1/x":                      "not a duration",
		"gcra 1/s burst":                "no value",
		"gcra 1/s burst two":            "not a whole number",
		"gcra 1/s bust 2":               "unknown word",
		"fixed_window 1 align noon":     "use epoch",
		"fixed_window 1 zone Nowhere/X": "unknown time zone",
		"gcra 1/99999999999d":           "not a number of days",
	} {
		if _, err := ParseSpec(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"s": time.Second, "1m30s": 90 * time.Second, "7d": 168 * time.Hour, "ms": time.Millisecond} {
		if d, err := ParseSpan(text); err != nil || d != want {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
}
