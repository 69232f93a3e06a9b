package docs

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/plot"
)

const algorithms = "algorithms.md"

// compared are the limits of the document: a hundred in ten seconds, in each form.
func compared() []escapement.Limit {
	r := rate(100, 10*time.Second)
	return []escapement.Limit{
		{Algorithm: escapement.TokenBucket, Rate: r},
		{Algorithm: escapement.GCRA, Rate: r, Burst: 20},
		{Algorithm: escapement.FixedWindow, Rate: r},
		{Algorithm: escapement.SlidingWindow, Rate: r},
		{Algorithm: escapement.RollingWindow, Rate: r},
		{Algorithm: escapement.Pacing, Rate: r, MaxDelay: 2 * time.Second},
	}
}

func title(l escapement.Limit) string {
	s := fmt.Sprintf("%v %d/%v", l.Algorithm, l.Rate.Count, l.Rate.Per)
	if l.Burst > 0 {
		s += fmt.Sprintf(" burst %d", l.Burst)
	}
	if l.MaxDelay > 0 {
		s += fmt.Sprintf(" max_delay %v", l.MaxDelay)
	}
	return s
}

// act is when a request made now acts, if it is admitted.
func (l *limited) act(now algo.Store) (algo.Store, bool) {
	v := l.plan.Take(&l.state, now, 1)
	return now + algo.Store(v.Delay()), v.Admitted
}

// traffic calls f at each request: below the limit, a burst, silence, twice the limit.
func traffic(f func(now algo.Store)) {
	for _, part := range []struct{ from, to, every int64 }{ // ms
		{0, 12_000, 200}, {17_000, 24_000, 25}, {34_000, 60_000, 50},
	} {
		for at := part.from; at < part.to; at += part.every {
			f(algo.Store(epoch + at*1000))
		}
	}
}

func TestAlgorithmsPicture(t *testing.T) {
	const seconds = 60
	var charts []*plot.Chart
	rows := [][]string{{"limit", "offered", "admitted", "most in one second", "most in any 10 s"}}
	for _, spec := range compared() {
		l := limit(t, spec)
		c := &plot.Chart{Title: title(spec), X: "seconds", Y: "per second", Levels: []plot.Level{{Name: "10 per second", Y: 10}},
			Steps: []plot.Steps{{Name: "offered"}, {Name: "admitted"}}}
		offered, admitted := make([]float64, seconds), make([]float64, seconds)
		var acts []algo.Store
		n := 0
		traffic(func(now algo.Store) {
			n++
			offered[(now-epoch)/1e6]++
			if at, ok := l.act(now); ok {
				acts = append(acts, at)
				if s := (at - epoch) / 1e6; s < seconds {
					admitted[s]++
				}
			}
		})
		for s := range seconds {
			for i, y := range []float64{offered[s], admitted[s]} {
				c.Steps[i].X, c.Steps[i].Y = append(c.Steps[i].X, float64(s)), append(c.Steps[i].Y, y)
			}
		}
		charts = append(charts, c)
		rows = append(rows, []string{"`" + title(spec) + "`", number(n), number(len(acts)), number(most(acts, 1e6)), number(most(acts, 10e6))})
	}
	picture(t, "algorithms.png", 2, charts...)
	table(t, algorithms, "traffic", rows...)
}

// most is the largest number of instants in a span of that length.
func most(at []algo.Store, span algo.Store) (most int) {
	first := 0
	for i := range at {
		for at[i]-at[first] >= span {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// What every span of ten seconds holds if a flood begins half a second before a window ends.
func TestTrailingPicture(t *testing.T) {
	c := &plot.Chart{Title: "a flood of 200 per second begins at 9.5 s: admitted in the last 10 seconds",
		X: "seconds", Y: "units in the last 10 s", Levels: []plot.Level{{Name: "limit: 100 per 10 s", Y: 100}}}
	rows := [][]string{{"limit", "most in any 10 s"}}
	for _, spec := range compared() {
		l := limit(t, spec)
		var acts []algo.Store
		for at := int64(9_500); at < 30_000; at += 5 {
			if act, ok := l.act(algo.Store(epoch + at*1000)); ok {
				acts = append(acts, act)
			}
		}
		rows = append(rows, []string{"`" + title(spec) + "`", number(most(acts, 10e6))})
		if spec.Algorithm == escapement.GCRA {
			continue
		}
		s := plot.Steps{Name: spec.Algorithm.String()}
		first, last := 0, 0
		for ms := int64(9_000); ms <= 30_000; ms += 20 {
			now := algo.Store(epoch + ms*1000)
			for last < len(acts) && acts[last] <= now {
				last++
			}
			for first < last && acts[first] <= now-10e6 {
				first++
			}
			s.X, s.Y = append(s.X, float64(ms)/1000), append(s.Y, float64(last-first))
		}
		c.Steps = append(c.Steps, s)
	}
	picture(t, "trailing.png", 1, c)
	table(t, algorithms, "trailing", rows...)
}

// What a ring of buckets leaves unused: a flood on 1000 per 10 s for an hour.
func TestRingTable(t *testing.T) {
	rows := [][]string{{"buckets", "state per key", "admitted in an hour", "of what is allowed"}}
	for _, buckets := range []int{8, 32, 128, 1024} {
		l := limit(t, escapement.Limit{Algorithm: escapement.RollingWindow, Rate: rate(1000, 10*time.Second), Buckets: buckets})
		var acts []algo.Store
		for at := int64(0); at < 3_600_000; at += 5 {
			if act, ok := l.act(algo.Store(epoch + at*1000)); ok {
				acts = append(acts, act)
			}
		}
		if n := most(acts, 10e6); n > 1000 {
			t.Errorf("%d buckets: %d in ten seconds", buckets, n)
		}
		rows = append(rows, []string{number(buckets), number(4*l.plan.Slots()) + " B", number(len(acts)), fmt.Sprintf("%.1f %%", float64(len(acts))/3600)})
	}
	table(t, algorithms, "ring", rows...)
}

// How long pacing holds callers of the burst, and whom it refuses.
func TestPacingSentences(t *testing.T) {
	l := limit(t, compared()[5])
	held, refused := time.Duration(0), 0
	for range 100 {
		v := l.plan.Take(&l.state, epoch, 1)
		if !v.Admitted {
			refused++
			continue
		}
		held = max(held, time.Duration(v.Delay())*time.Microsecond)
	}
	says(t, algorithms, fmt.Sprintf("Of 100 callers at once %d are admitted, the last of them held for %v, and %d are refused at once.", 100-refused, held, refused))
}
