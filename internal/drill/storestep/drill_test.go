package storestep

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

func TestJudge(t *testing.T) {
	ms := algo.Mono(time.Millisecond)
	var asked []Asked
	// A bucket of 2 and 10 a second: two at once, then one each 100 ms; asked each 10 ms.
	for at := algo.Mono(0); at <= 1000*ms; at += 10 * ms {
		asked = append(asked, Asked{Sent: at, Answered: at + ms, Admitted: at == 0 || at == 10*ms || at >= 100*ms && at%(100*ms) == 0})
	}
	r := judge(10, 2, time.Second, asked)
	if r.Admitted != 12 || r.Right < 12 || r.Right > 12.02 || r.LongestGap != 90 || r.Decisions != 101 {
		t.Errorf("%+v", r)
	}
	for i := range asked {
		asked[i].Admitted = asked[i].Admitted && asked[i].Sent < 500*ms
	}
	if r := judge(10, 2, time.Second, asked); r.LongestGap != 590 {
		t.Errorf("nothing from 400 ms on: %+v", r)
	}
	if r := judge(10, 2, time.Second, []Asked{{Failed: true}}); r.Failed != 1 || r.Admitted != 0 {
		t.Errorf("%+v", r)
	}
}

func TestFlap(t *testing.T) {
	if got, err := ParseFlap("500ms*3"); err != nil || len(got) != 3 || got[0] != 500*time.Millisecond || got[1] != -got[0] || got[2] != got[0] {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "500ms", "x*3", "1s*0", "1s*100000"} {
		if _, err := ParseFlap(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestTheLimitHoldsAndTheRecipeDoesNot(t *testing.T) {
	o := Options{Rate: escapement.PerSecond(10), Load: 200, For: 6 * time.Second, Steps: []time.Duration{45 * time.Second, -105 * time.Second, 60 * time.Second}, Instances: 2}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d admitted, %.1f right, %d failed, %v", r.Admitted, r.Right, r.Failed, r.Problems)
	// A busy machine delays decisions; the drill's own bound is tighter.
	if d := float64(r.Admitted) - r.Right; d < -4 || d > 4 {
		t.Errorf("%d admitted, %.1f are right", r.Admitted, r.Right)
	}
	o.Naive, o.Instances = true, 1
	n, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if float64(n.Admitted) < n.Right+5 || len(n.Problems) == 0 {
		t.Errorf("the recipe held: %d admitted, %.1f right", n.Admitted, n.Right)
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	_, err := Run(t.Context(), Options{Load: -1, Instances: 1000, Steps: []time.Duration{48 * time.Hour}})
	for _, want := range []string{"per second", "a run of", "instances", "a step"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no mention of %q: %v", want, err)
		}
	}
}

// A replica whose clock differs is promoted under load.
func TestFailover(t *testing.T) {
	var r *Report
	for range 3 {
		var err error
		r, err = RunFailover(t.Context(), Options{Rate: escapement.PerSecond(10), Load: 200, For: 12 * time.Second, Instances: 2}, -45*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d admitted, %.0f right, gap %.0f ms, %d failed, %d unknown, %+v, %v", r.Admitted, r.Right, r.LongestGap, r.Failed, r.Unknown, *r.Failover, r.Problems)
		if len(r.Problems) == 0 {
			break
		}
	}
	if len(r.Problems) > 0 || r.Failover.OutageMS <= 0 || r.Seen == 0 {
		t.Errorf("three times in a row: %v", r.Problems)
	}
	var text, picture strings.Builder
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "was promoted") {
		t.Errorf("%v %s", err, text.String())
	}
	if err := r.Chart().Write(&picture, ".svg"); err != nil || !strings.Contains(picture.String(), "failover") {
		t.Errorf("the picture: %v", err)
	}
}
