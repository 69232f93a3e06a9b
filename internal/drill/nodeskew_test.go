package drill

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// The limit holds whatever the wall clocks of the instances say, and the bucket that
// believes them does not.
func TestNodeSkew(t *testing.T) {
	self := func(kind string) func(addr string) []string {
		return func(addr string) []string { return []string{os.Args[0], kind, addr} }
	}
	o := NodeSkewOptions{Limit: perfect, Rate: 300, For: 4 * time.Second, Skew: 2 * time.Second, Cache: t.TempDir(), Child: self("shared")}
	var problems []string
	for range 3 {
		rep, err := NodeSkew(t.Context(), o)
		if errors.Is(err, skewrun.ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := rep.Text(&text); err != nil {
			t.Fatal(err)
		}
		t.Log(text.String())
		if problems = rep.Problems; len(problems) == 0 {
			break
		}
	}
	if len(problems) > 0 {
		t.Errorf("three times in a row: %v", problems)
	}
	o.Naive, o.Child = true, self("skewed")
	rep, err := NodeSkew(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Ratio < 1.3 {
		t.Errorf("the bucket that believes the callers held: %+v", *rep)
	}
}

func TestJudgeOfNodes(t *testing.T) {
	o := &NodeSkewOptions{Limit: Limit{Count: 10, Per: time.Second, Burst: 2}, Skew: time.Second}
	var asked [2][]Asked
	for n := range 100 {
		at := algo.Mono(n) * algo.Mono(10*time.Millisecond)
		asked[n%2] = append(asked[n%2], Asked{Sent: at, Answered: at + 2, Admitted: n < 2 || n%10 == 0})
	}
	rep := judgeNodes(o, asked[:])
	if rep.Right != 11 || rep.Admitted != 11 || rep.Each[0] != 10 || rep.Each[1] != 1 || rep.Offered != 100 {
		t.Errorf("%+v", *rep)
	}
	rep.MeasuredMS = 1000
	if rep.check(o); len(rep.Problems) != 0 {
		t.Errorf("%v", rep.Problems)
	}
	rep.Admitted, rep.MeasuredMS = 14, 900
	if rep.check(o); len(rep.Problems) != 2 {
		t.Errorf("%v", rep.Problems)
	}
}

func TestNodeSkewOptionsAreChecked(t *testing.T) {
	o := NodeSkewOptions{Limit: Limit{}, Rate: 1, For: time.Millisecond}
	err := o.Check()
	for _, want := range []string{"count 0", "1 requests", "a load of", "a skew of"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no mention of %q: %v", want, err)
		}
	}
}
