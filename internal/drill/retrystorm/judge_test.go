package retrystorm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
)

const (
	ms      = algo.Mono(time.Millisecond)
	began   = 7 * ms // an instant like any other
	stepped = began + 1500*ms
)

// answer says what becomes of a request that is due so long after the step: the status of
// each attempt, 10 ms apart.
type answer func(after time.Duration) []int

func fine(time.Duration) []int { return []int{200} }

// refusedWithin refuses in a stretch after the step: status lists of those are as given.
func refusedWithin(from, to time.Duration, statuses ...int) answer {
	return func(after time.Duration) []int {
		if after >= from && after < to {
			return statuses
		}
		return []int{200}
	}
}

// phase is four seconds of a request each millisecond.
func phase(limiter, client string, step time.Duration, become answer) Phase {
	p := Phase{Limiter: limiter, Client: client, Step: step, Began: began, Stepped: stepped, Ended: began + 4000*ms}
	for at := began; at < p.Ended; at += ms {
		r := Request{Due: at, Done: at}
		for _, status := range become(time.Duration(at - stepped)) {
			r.Attempts = append(r.Attempts, Attempt{Sent: r.Done, Status: status})
			r.Done += 10 * ms
		}
		p.Requests = append(p.Requests, r)
	}
	return p
}

const (
	back   = -320 * time.Millisecond
	second = time.Second
	milli  = time.Millisecond
)

func TestJudgePhase(t *testing.T) {
	for _, tt := range []struct {
		name   string
		become answer
		want   PhaseReport
	}{
		{"nothing is refused: two periods are judged", fine,
			PhaseReport{Amplification: 1, P99: 10, Requests: 2001, Attempts: 2001, Worst: 50}},
		// The last refused attempt is the fourth of the request at 399 ms: 430 requests and
		// one, of which 300 are refused.
		{"refused from 100 to 400 ms, four attempts at once", refusedWithin(100*milli, 400*milli, 429, 429, 429, 429),
			PhaseReport{Amplification: rounded(1330. / 430), P99: 40, Calm: 0.429, RefusedFrom: 100, RefusedFor: 329, Refusing: 330, Refusals: 1200,
				Requests: 430, Attempts: 1330, Refused: rounded(30000. / 430), Worst: 200}},
		{"the third attempt is admitted", refusedWithin(0, 200*milli, 429, 429, 200),
			PhaseReport{Amplification: rounded(610. / 210), P99: 30, Calm: 0.209, RefusedFor: 209, Refusing: 210, Refusals: 400, Requests: 210, Attempts: 610, Worst: 150}},
		{"what comes later than two periods is not judged", refusedWithin(1900*milli, 2400*milli, 429),
			PhaseReport{Amplification: 1, P99: 10, Calm: 2.399, RefusedFrom: 1900, RefusedFor: 499, Refusing: 500, Refusals: 500,
				Requests: 2001, Attempts: 2001, Refused: rounded(10100. / 2001), Worst: 50}},
		{"before the step: a tenth", refusedWithin(-150*milli, 0, 429),
			PhaseReport{Amplification: 1, P99: 10, Before: 10, Requests: 2001, Attempts: 2001, Worst: 50}},
		{"no answer, and an answer of another kind", func(after time.Duration) []int {
			if after == 0 {
				return []int{502}
			}
			if after == -second || after == second {
				return []int{0}
			}
			return []int{200}
		}, PhaseReport{Amplification: 1, P99: 10, Requests: 2001, Attempts: 2001, Failed: 3, Worst: 50}},
		{"no attempt at all", func(time.Duration) []int { return nil },
			PhaseReport{Requests: 2001, Failed: 4000}},
	} {
		p := phase(Naive, AtOnce, back, tt.become)
		tt.want.Limiter, tt.want.Client, tt.want.Step, tt.want.Sent = Naive, AtOnce, "-320ms", 4000
		if got := judgePhase(&p, 2*second); got != tt.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", tt.name, got, tt.want)
		}
	}
	empty := Phase{Limiter: Ours, Client: Budget}
	if got := judgePhase(&empty, second); got != (PhaseReport{Limiter: Ours, Client: Budget, Step: "none"}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// spent is a client whose budget lets one refused request in six be repeated.
func spent(from, to time.Duration) answer {
	return func(after time.Duration) []int {
		switch {
		case after < from || after >= to:
			return []int{200}
		case after/milli%6 == 0:
			return []int{429, 429}
		}
		return []int{429}
	}
}

func TestJudge(t *testing.T) {
	storm := refusedWithin(75*milli, 700*milli, 429, 429, 429, 429)
	calm := spent(400*milli, 700*milli)
	sixth := func(d time.Duration) []int { // a few more refusals than one in a hundred
		if d >= 0 && d/milli%60 == 0 {
			return []int{429}
		}
		return []int{200}
	}
	for _, tt := range []struct {
		name   string
		step   time.Duration
		phases []Phase
		want   []string // parts of problems
	}{
		{"as expected", back, []Phase{phase(Naive, AtOnce, back, storm), phase(Naive, Budget, back, calm),
			phase(Ours, AtOnce, back, fine), phase(Ours, AtOnce, 0, fine)}, nil},
		{"no storm", back, []Phase{phase(Naive, AtOnce, back, fine)}, []string{"1.00 attempts per request, expected at least 1.5", "refusals for 0 ms"}},
		{"a short storm", back, []Phase{phase(Naive, AtOnce, back, refusedWithin(0, 200*milli, 429, 429, 429, 200))}, []string{"refusals for 219 ms"}},
		{"a long one of clients that do not retry", back, []Phase{phase(Naive, AtOnce, back, refusedWithin(0, 500*milli, 429))}, []string{"1.00 attempts"}},
		{"no storm is expected of a step forward", -back, []Phase{phase(Naive, AtOnce, -back, fine), phase(Naive, Budget, -back, fine)}, nil},
		{"a budget that does not hold", back, []Phase{phase(Naive, Budget, back, refusedWithin(0, 500*milli, 429, 200))}, []string{"expected at most 1.1"}},
		{"ours refuses", back, []Phase{phase(Ours, Budget, back, sixth), phase(Ours, Budget, 0, fine)}, []string{"1.70 % refused, 0.00 % without"}},
		{"ours refuses less", back, []Phase{phase(Ours, Budget, back, fine), phase(Ours, Budget, 0, sixth)}, []string{"0.00 % refused, 1.70 % without"}},
		{"ours refuses as much", back, []Phase{phase(Ours, Budget, back, sixth), phase(Ours, Budget, 0, sixth)}, nil},
		{"ours, compared with the same client only", back, []Phase{phase(Ours, Budget, back, sixth), phase(Ours, AtOnce, 0, fine)}, nil},
		{"a busy machine", back, []Phase{phase(Ours, AtOnce, back, refusedWithin(-second, -second+30*milli, 429))}, []string{"2.0 % refused before the step"}},
		{"a server that breaks down", back, []Phase{phase(Ours, AtOnce, back, refusedWithin(second, second+50*milli, 0))}, []string{"50 of 4000 requests got no answer"}},
	} {
		o := Options{Limit: thousand, Rate: 1000, Step: tt.step}
		got := Judge(&o, tt.phases).Problems
		ok := len(got) == len(tt.want)
		for i := range min(len(got), len(tt.want)) {
			ok = ok && strings.Contains(got[i], tt.want[i])
		}
		if !ok {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

// A load that was not that of the schedule is named where something is out of bounds.
func TestLateLoad(t *testing.T) {
	p := phase(Naive, AtOnce, back, fine)
	for i := 100; i < 300; i++ {
		p.Requests[i].Attempts[0].Sent = p.Requests[300].Due
	}
	o := Options{Limit: thousand, Rate: 1000, Step: back}
	rep := Judge(&o, []Phase{p})
	if rep.Phases[0].Late != 200 || len(rep.Problems) != 2 || !strings.Contains(rep.Problems[0], "sent up to 200 ms late: 1.00 attempts") {
		t.Errorf("%v ms late, %q", rep.Phases[0].Late, rep.Problems)
	}
}

func TestP99(t *testing.T) {
	var took []algo.Mono
	for n := algo.Mono(1); n <= 250; n++ {
		took = append(took, n)
		want := n - n/100
		if got := p99(slices.Clone(took)); got != want {
			t.Errorf("of %d: %d, want %d", n, got, want)
		}
	}
}
