package drill

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

var perfect = Limit{Count: 100, Per: time.Second, Burst: 100}

// observed is a run of 300 requests a second in phases of 2 s, answered 200 µs after they
// are sent, in which admit decides from the true time in nanoseconds.
func observed(steps []time.Duration, admit func(ns int64) bool) *Run {
	r := &Run{Limit: perfect, Rate: 300, Wall: 1_800_000_000_000_000}
	const interval = int64(time.Second) / 300
	for i := range len(steps) + 1 {
		begin := int64(i) * int64(2*time.Second)
		p := Phase{Applied: algo.Mono(begin)}
		if i > 0 {
			p.Change.Step = steps[i-1]
			r.Events = append(r.Events, Seen{clock.Step, p.Change.Step + 300*time.Microsecond, algo.Mono(begin + 90e6)})
		}
		for n := range int64(600) {
			at := begin + n*interval + interval/2
			p.Asked = append(p.Asked, Asked{Sent: algo.Mono(at - 100_000), Answered: algo.Mono(at + 100_000), Admitted: admit(at)})
		}
		r.Phases = append(r.Phases, p)
	}
	return r
}

var steps = []time.Duration{-time.Hour, 320 * time.Millisecond}

func right() func(int64) bool {
	e := exact{Limit: perfect}
	return e.take
}

func TestJudgeFindsNothingWrongWithWhatIsRight(t *testing.T) {
	rep := Judge(observed(steps, right()))
	if !rep.Held() || rep.FalseEvents != 0 || len(rep.Events) != 2 {
		t.Errorf("%+v", rep)
	}
	for i, want := range []PhaseReport{{"none", 600, 299, 299, 1}, {"-3600s", 600, 200, 200, 1}, {"+320ms", 600, 200, 200, 1}} {
		if rep.Phases[i] != want {
			t.Errorf("phase %d: %+v, want %+v", i, rep.Phases[i], want)
		}
	}
	if e := rep.Events[1]; e.SizeMS != 320.3 || e.SeenAfterMS != 90 || e.Kind != clock.Step {
		t.Errorf("%+v", e)
	}
}

// A limiter that believes its wall clock gives a burst away after a forward step.
func TestJudgeFindsALimiterThatFollowsTheWall(t *testing.T) {
	e := exact{Limit: perfect}
	rep := Judge(observed(steps, func(ns int64) bool {
		if ns >= int64(4*time.Second) {
			ns += int64(320 * time.Millisecond)
		}
		return e.take(ns)
	}))
	if rep.Held() || rep.Phases[2].Admitted != 232 || rep.Phases[2].Right != 200 || len(rep.Problems) != 1 {
		t.Errorf("%+v", rep)
	}
}

func TestJudgeOfEvents(t *testing.T) {
	at := func(d time.Duration) algo.Mono { return algo.Mono(2*time.Second + d) }
	for name, c := range map[string]struct {
		change  func(*Run)
		false   int
		problem string
	}{
		"unseen":        {func(r *Run) { r.Events = r.Events[:1] }, 0, "+320ms was not seen"},
		"late":          {func(r *Run) { r.Events[0].At = at(201 * time.Millisecond) }, 0, "seen after 201ms"},
		"wrong size":    {func(r *Run) { r.Events[0].Size = -time.Hour - 2*time.Millisecond }, 1, "has no cause"},
		"wrong sign":    {func(r *Run) { r.Events[0].Size = time.Hour }, 1, "has no cause"},
		"wrong kind":    {func(r *Run) { r.Events[0].Kind = clock.Suspend }, 1, "has no cause"},
		"twice":         {func(r *Run) { r.Events = append(r.Events, r.Events[0]) }, 1, "has no cause"},
		"before a step": {func(r *Run) { r.Events = append(r.Events, Seen{clock.Step, time.Second, 5}) }, 1, "phase 0"},
	} {
		r := observed(steps, right())
		c.change(r)
		rep := Judge(r)
		if rep.FalseEvents != c.false || !strings.Contains(strings.Join(rep.Problems, "\n"), c.problem) {
			t.Errorf("%s: %d false, %q", name, rep.FalseEvents, rep.Problems)
		}
	}
}

// A machine that sleeps for half a second earns half a second's units, and reports it as a
// sleep; a drift earns and reports nothing.
func TestJudgeOfSuspendAndDrift(t *testing.T) {
	e := exact{Limit: perfect}
	r := observed([]time.Duration{1, 1}, func(ns int64) bool {
		if ns >= int64(2*time.Second) {
			ns += int64(500 * time.Millisecond)
		}
		return e.take(ns)
	})
	r.Phases[1].Change, r.Phases[2].Change = Change{Suspend: 500 * time.Millisecond}, Change{Drift: 200}
	r.Events = []Seen{{clock.Suspend, 500 * time.Millisecond, r.Phases[1].Applied + 5e6}}
	rep := Judge(r)
	if !rep.Held() || rep.Phases[1].Admitted != 250 || rep.Phases[1].Step != "suspend 500ms" || rep.Phases[2].Step != "drift +200ppm" {
		t.Errorf("%+v", rep)
	}
	r.Events = append(r.Events, Seen{clock.Step, time.Millisecond, r.Phases[2].Applied + 5e6})
	if rep := Judge(r); rep.FalseEvents != 1 {
		t.Errorf("a step during a drift: %+v", rep)
	}
}

func TestRatioWhereNothingIsRight(t *testing.T) {
	r := observed(nil, func(int64) bool { return false })
	if rep := Judge(r); rep.Held() || rep.Phases[0].Ratio != 0 {
		t.Errorf("%+v", rep)
	}
	p := &Phase{Asked: make([]Asked, 3)}
	yes, no := func(*Asked) bool { return true }, func(*Asked) bool { return false }
	if a, b := newPhase(p, no, no).Ratio, newPhase(p, yes, no).Ratio; a != 1 || b <= maxRatio {
		t.Errorf("nothing of nothing is %v, three of nothing %v", a, b)
	}
}

var seedFlag = flag.Uint64("seed", 0, "seed of random tests; 0 chooses one")

// The exact bucket against the same in rational numbers, with times that stand and go back.
func TestExactBucket(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d: repeat with go test ./internal/drill -run ExactBucket -seed %d", seed, seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		l := Limit{Count: 1 + rnd.Int64N(1000), Per: time.Duration(1 + rnd.Int64N(int64(time.Minute))), Burst: 1 + rnd.Int64N(20)}
		e := exact{Limit: l}
		level, at, begun := big.NewRat(l.Burst, 1), int64(0), false
		now := rnd.Int64N(1e15)
		for range 300 {
			now += rnd.Int64N(int64(l.Per)/l.Count*3+2) - int64(l.Per)/l.Count/2
			if !begun {
				begun, at = true, now
			}
			if now > at {
				level.Add(level, new(big.Rat).Mul(big.NewRat(now-at, int64(l.Per)), big.NewRat(l.Count, 1)))
				at = now
			}
			if full := big.NewRat(l.Burst, 1); level.Cmp(full) > 0 {
				level.Set(full)
			}
			want := level.Cmp(big.NewRat(1, 1)) >= 0
			if want {
				level.Sub(level, big.NewRat(1, 1))
			}
			if got := e.take(now); got != want {
				t.Fatalf("seed %d: %v at %d: %v, in rational numbers %v", seed, l, now, got, want)
			}
		}
	}
}

// The recipes meet their twins on a clock that does not step, and only there.
func TestRecipesAreComparedWithThemselves(t *testing.T) {
	r := observed(steps, right())
	r.Naive = true
	beside := recipes(perfect)
	for i := range r.Phases {
		for k := range r.Phases[i].Asked {
			a := &r.Phases[i].Asked[k]
			now := r.Wall + int64(a.at())/1000
			if i == 2 {
				now += 320_000
			}
			for n := range beside {
				if beside[n].Take(now) {
					a.Recipes |= 1 << n
				}
			}
		}
	}
	rep := Judge(r)
	if len(rep.Naive) != 3 || !rep.Held() {
		t.Fatalf("%+v", rep)
	}
	for i, n := range rep.Naive {
		if n.Phases[0].Ratio != 1 || n.Phases[1].Ratio != 1 {
			t.Errorf("%s without a step: %+v", n.Name, n.Phases)
		}
		if n.Name == "bucket" && n.Phases[2].Admitted != 232 {
			t.Errorf("the bucket mints %d", n.Phases[2].Admitted-n.Phases[2].Right)
		}
		if n.About == "" || Recipes[beside[i].name] == "" {
			t.Errorf("%s is not explained", n.Name)
		}
	}
	var text, picture bytes.Buffer
	if err := rep.Text(&text); err != nil || !strings.Contains(text.String(), "+320ms") || !strings.Contains(text.String(), "232") {
		t.Errorf("%v\n%s", err, &text)
	}
	if err := r.Chart().Write(&picture, ".svg"); err != nil || !strings.Contains(picture.String(), "bucket, wall clock") {
		t.Errorf("%v", err)
	}
}

func TestReportAsJSON(t *testing.T) {
	b, err := json.Marshal(Judge(observed(steps, right())))
	if err != nil {
		t.Fatal(err)
	}
	const begin = `{"phases":[{"step":"none","offered":600,"admitted":299,"right":299,"ratio":1},`
	if s := string(b); !strings.HasPrefix(s, begin) || !strings.Contains(s, `"false_events":0,"limit"`) || !strings.HasSuffix(s, `"problems":[]}`) {
		t.Errorf("%s", s)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := func() Options {
		return Options{Limit: perfect, Rate: 300, Phase: 2 * time.Second, Changes: []Change{{Step: time.Second}}}
	}
	o := good()
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		"requests a second": func(o *Options) { o.Rate = maxRate + 1 },
		"0 changes":         func(o *Options) { o.Changes = nil },
		"65 changes":        func(o *Options) { o.Changes = make([]Change, 65) },
		"of nothing":        func(o *Options) { o.Changes[0] = Change{} },
		"several clocks":    func(o *Options) { o.Changes[0].Drift = 100 },
		"a drift of 501":    func(o *Options) { o.Changes[0] = Change{Drift: 501} },
		"a suspend of -1s":  func(o *Options) { o.Changes[0] = Change{Suspend: -time.Second} },
		"a step of 1ms":     func(o *Options) { o.Changes[0].Step = time.Millisecond },
		"at least 500ms":    func(o *Options) { o.Phase = time.Millisecond },
		"in all":            func(o *Options) { o.Phase = time.Hour },
		"use 1 to 1000000":  func(o *Options) { o.Limit.Burst = 0 },
		"a burst of 100":    func(o *Options) { o.Limit.Per = -1 },
		"use a period":      func(o *Options) { o.Limit = Limit{1, 100 * 365 * 24 * time.Hour, 1000} },
	} {
		o := good()
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
