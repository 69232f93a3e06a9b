package clock

import (
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// ref is a candidate whose clock is off by so much, known to within err, read at 0.
func ref(group string, off, err time.Duration) candidate {
	return candidate{group: group, sample: Sample{Time: epoch + int64(off), Err: err, N: 1}, known: true}
}

func TestConfer(t *testing.T) {
	const ms = time.Millisecond
	silent := func(group string) candidate { return candidate{group: group} }
	for _, c := range []struct {
		name   string
		cs     []candidate
		votes  int
		quorum bool
		member []bool
	}{
		{"one configured is enough", []candidate{ref("a", 0, ms)}, 1, true, []bool{true}},
		{"one of two is not", []candidate{ref("a", 0, ms), silent("b")}, 1, false, []bool{true, false}},
		{"two agree", []candidate{ref("a", 0, ms), ref("b", ms, ms)}, 2, true, []bool{true, true}},
		{"two do not", []candidate{ref("a", 0, ms), ref("b", 9*ms, ms)}, 1, false, []bool{true, false}},
		{"two of three", []candidate{ref("a", 0, ms), ref("b", ms, ms), ref("c", time.Hour, ms)}, 2, true, []bool{true, true, false}},
		{"two of four is no majority", []candidate{ref("a", 0, ms), ref("b", ms, ms), ref("c", time.Hour, ms), ref("d", -time.Hour, ms)}, 2, false, []bool{true, true, false, false}},
		{"two of one group are one", []candidate{ref("a", 0, ms), ref("a", 0, ms), ref("b", time.Hour, ms)}, 1, false, nil},
		{"all silent", []candidate{silent("a"), silent("b")}, 0, false, []bool{false, false}},
	} {
		got := confer(0, c.cs, 0)
		if got.votes != c.votes || got.quorum != c.quorum {
			t.Errorf("%s: %d votes, quorum %v; want %d, %v", c.name, got.votes, got.quorum, c.votes, c.quorum)
		}
		for i := range c.member {
			if got.member[i] != c.member[i] {
				t.Errorf("%s: members %v, want %v", c.name, got.member, c.member)
				break
			}
		}
	}
}

func TestConferGrowsErrorsAndForgets(t *testing.T) {
	cs := []candidate{ref("a", 0, time.Millisecond), ref("b", 100*time.Millisecond, time.Millisecond)}
	if confer(0, cs, 200_000).quorum {
		t.Error("fresh and 100 ms apart, they were taken to agree")
	}
	if m := algo.Mono(300 * time.Second); !confer(m, cs, 200_000).quorum { // 61 ms each
		t.Error("after five minutes at 200 ppm they may agree")
	}
	if got := confer(algo.Mono(sampleLife)+1, cs, 200_000); got.votes != 0 {
		t.Errorf("an hour later they still vote: %+v", got)
	}
}

func TestTargetIsHeldToTheMajority(t *testing.T) {
	const ms = int64(time.Millisecond)
	cs := []candidate{ref("a", 8*time.Millisecond, 10*time.Millisecond), ref("b", 0, 2*time.Millisecond), ref("c", 0, 2*time.Millisecond)}
	con := confer(0, cs, 0)
	if got := (&chooser{}).target(cs, con); got != epoch+2*ms {
		t.Errorf("target %+d ns, want the edge of the agreement, 2 ms", got-epoch)
	}
	cs[0].known = false
	if got := (&chooser{}).target(cs, confer(0, cs, 0)); got != epoch {
		t.Errorf("target %+d ns, want the middle, 0", got-epoch)
	}
}

func TestAim(t *testing.T) {
	for _, c := range []struct {
		err       time.Duration
		confirmed bool
		held      time.Duration
		want      act
	}{
		{0, false, 0, slew}, {time.Second, false, 0, slew}, {-time.Second, true, 0, slew},
		{time.Second + 1, false, 0, keep}, {-time.Hour, false, patience - 1, keep},
		{time.Second + 1, true, 0, rebase}, {-time.Hour, true, 0, rebase}, {time.Hour, false, patience, rebase},
	} {
		if got := aim(int64(c.err), c.confirmed, c.held); got != c.want {
			t.Errorf("an error of %v, confirmed %v, held %v: %d, want %d", c.err, c.confirmed, c.held, got, c.want)
		}
	}
}

func TestBoundGrowsAndAlwaysHoldsNow(t *testing.T) {
	h := held{span: span{epoch - 1000, epoch + 1000}, state: Synchronised, drift: 200_000}
	m := algo.Mono(100 * time.Second) // 20 ms of drift
	i := h.interval(m, epoch+int64(m))
	if want := algo.Wall(epoch + int64(m) - 1000 - 20e6); i.Earliest != want || i.State != Synchronised {
		t.Errorf("%+v, want from %d", i, want)
	}
	far := epoch + int64(m) + int64(time.Second)
	if i = h.interval(m, far); i.Latest != algo.Wall(far) || i.State != Slewing {
		t.Errorf("%+v, want up to guarded time, slewing", i)
	}
	if i = (held{state: Unknown}).interval(m, far); i.Bounded() || i.Earliest >= i.Latest {
		t.Errorf("an unknown bound is %+v", i)
	}
}
