package docs

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clocktest"
	"github.com/escapement-io/escapement/internal/naive"
	"github.com/escapement-io/escapement/internal/plot"
)

const clocks = "clocks.md"

// A limiter that is dated by the wall clock of a machine beside one that is dated by its
// line, 2000 a second, three seconds, one step after the first: the two may differ in
// what they are, so each is compared with itself without a step.
func TestStepsTable(t *testing.T) {
	steps := []time.Duration{0, 320 * time.Millisecond, -50 * time.Millisecond, -320 * time.Millisecond, -2 * time.Second, -12 * time.Second}
	rows := [][]string{{"step after 1 s", "bucket", "window", "spacing", "`token_bucket`", "`sliding_window`", "`pacing`"}}
	for _, step := range steps {
		row := []string{"none"}
		if step != 0 {
			row[0] = fmt.Sprintf("%+g s", step.Seconds())
		}
		for _, r := range []naive.Recipe{naive.Rounding(2000, 2000), &naive.Window{Limit: 2000}, &naive.Spacing{Interval: 500}} {
			row = append(row, number(stepped(step, func(m *clocktest.Machine, _ *clock.Line) bool { return r.Take(m.Wall() / 1000) })))
		}
		for _, a := range []algo.Algorithm{algo.TokenBucket, algo.SlidingWindow, algo.Pacing} {
			l := limit(t, escapement.Limit{Algorithm: a, Rate: rate(2000, time.Second)})
			row = append(row, number(stepped(step, func(_ *clocktest.Machine, line *clock.Line) bool { return l.take(line.Now()) })))
		}
		rows = append(rows, row)
	}
	for column := 4; column < 7; column++ {
		for _, row := range rows[2:] {
			if row[column] != rows[1][column] {
				t.Errorf("%s: a step of %s changes %s to %s", rows[0][column], row[0], rows[1][column], row[column])
			}
		}
	}
	table(t, clocks, "steps", rows...)
}

// stepped counts what is admitted of 4000 requests a second.
func stepped(step time.Duration, take func(*clocktest.Machine, *clock.Line) bool) (admitted int) {
	m := clocktest.NewMachine()
	m.Advance(250 * time.Millisecond)
	line := clock.NewLineFrom(m)
	for i := range 12_000 {
		if i == 4000 {
			m.Step(step)
		}
		if take(m, line) {
			admitted++
		}
		next := clocktest.Epoch + int64(250*time.Millisecond) + int64(i+1)*int64(250*time.Microsecond)
		m.Advance(time.Duration(next - m.Truth()))
	}
	return admitted
}

// A client of 60 an hour that polls at some pace, and of 5 an hour.
func TestPollingTable(t *testing.T) {
	rows := [][]string{{"limit", "polled every", "rounding to three decimals", "`token_bucket`"}}
	for _, c := range []struct {
		count, hours int
		paces        []int
	}{{60, 1, []int{10, 25, 31, 35, 45, 60, 100}}, {5, 4, []int{300, 400, 500, 900}}} {
		for _, every := range c.paces {
			r, o := polled(t, c.count, every, c.hours)
			rows = append(rows, []string{fmt.Sprintf("%d per hour, %d h", c.count, c.hours), fmt.Sprintf("%d ms", every), number(r), number(o)})
		}
	}
	table(t, clocks, "polling", rows...)
}

// polled drains the bucket, asks at a pace for some hours, and counts what is admitted.
func polled(t *testing.T, count, everyMS, hours int) (recipe, ours int) {
	r := naive.Rounding(float64(count), float64(count)/3600)
	l := limit(t, escapement.Limit{Rate: rate(int64(count), time.Hour)})
	for range count {
		r.Take(epoch)
		l.take(epoch)
	}
	for at := everyMS; at <= hours*3_600_000; at += everyMS {
		now := epoch + int64(at)*1000
		if r.Take(now) {
			recipe++
		}
		if l.take(algo.Store(now)) {
			ours++
		}
	}
	return recipe, ours
}

func TestPollingPicture(t *testing.T) {
	c := &plot.Chart{Title: "60 per hour, emptied: admitted in the next hour, by how often the client polls",
		X: "polled every so many milliseconds", Y: "units admitted",
		Steps: []plot.Steps{{Name: "rounded to three decimals"}, {Name: "escapement token_bucket"}}}
	for every := 5; every <= 120; every++ {
		r, o := polled(t, 60, every, 1)
		if o < 59 || o > 60 {
			t.Errorf("every %d ms: %d admitted", every, o)
		}
		for i, y := range []int{r, o} {
			s := &c.Steps[i]
			s.X, s.Y = append(s.X, float64(every)), append(s.Y, float64(y))
		}
	}
	c.Steps[0], c.Steps[1] = c.Steps[1], c.Steps[0]
	picture(t, "polling.png", 1, c)
}

// Callers that date one bucket by their own clocks, one of which is 900 ms ahead.
func TestCallersTable(t *testing.T) {
	rows := [][]string{{"one a second, burst 60, asked for a minute", "dated by the callers", "dated by one clock"}}
	for _, c := range []struct {
		callers, every int64 // ms
	}{{2, 100}, {12, 10}} {
		r := naive.Rounding(60, 1)
		l := limit(t, escapement.Limit{Rate: rate(1, time.Second), Burst: 60})
		var recipe, ours int
		for i := range 60_000 / c.every {
			now := epoch + i*c.every*1000
			ahead := int64(0)
			if i%c.callers == c.callers-1 {
				ahead = 900_000
			}
			if r.Take(now + ahead) {
				recipe++
			}
			if l.take(algo.Store(now)) {
				ours++
			}
		}
		rows = append(rows, []string{fmt.Sprintf("%d callers, %d requests per second, one 900 ms ahead", c.callers, 1000/c.every), number(recipe), number(ours)})
	}
	table(t, clocks, "callers", rows...)

	r := naive.Rounding(60, 1)
	l := limit(t, escapement.Limit{Rate: rate(1, time.Second), Burst: 60})
	ask := func(ms int64, times int) (recipe, ours int) {
		for range times {
			if r.Take(epoch + ms*1000) {
				recipe++
			}
			if l.take(algo.Store(epoch + ms*1000)) {
				ours++
			}
		}
		return recipe, ours
	}
	ask(0, 60)
	ask(-60_000, 1)
	recipe, ours := ask(20, 100)
	says(t, clocks, fmt.Sprintf("20 ms after that, %d more are admitted. Here it is %d.", recipe, ours))
}

// What the monotonic clock runs fast, a local rate runs fast.
func TestSlewTable(t *testing.T) {
	rows := [][]string{{"the clock is slewed by", "admitted in a true hour at 100 per second", "too many"}}
	for _, ppm := range []float64{0, 500, 83_333} {
		m := clocktest.NewMachine()
		m.Drift(ppm, 0)
		line := clock.NewLineFrom(m)
		l := limit(t, escapement.Limit{Rate: rate(100, time.Second)})
		for range 100 {
			l.take(line.Now())
		}
		admitted := 0
		for m.Truth() < clocktest.Epoch+int64(time.Hour) {
			if l.take(line.Now()) {
				admitted++
			}
			m.Advance(2 * time.Millisecond)
		}
		rows = append(rows, []string{fmt.Sprintf("%g ppm", ppm), number(admitted), fmt.Sprintf("%.2f %%", float64(admitted-360_000)/3600)})
	}
	table(t, clocks, "slew", rows...)
}

// What the other recipes answer when nothing, or little, has happened.
func TestElapsedSentences(t *testing.T) {
	day := float64(naive.Elapsed(86_400_000, 0, 0)) / 86_400_000 * 1000
	says(t, clocks, fmt.Sprintf("credits %.1f of 1000 after a day of silence", day))
	starved := 0.0
	for range 600 {
		starved += float64(naive.Elapsed(100, 0, 3000)) / 100
	}
	says(t, clocks, fmt.Sprintf("gets %.0f of 600 units", starved))

	const uptime = 10 * 24 * int64(time.Hour)
	g := naive.Guard{Last: epoch / 1000}
	before := g.Now(epoch/1000, uptime)
	jump := g.Now(epoch/1000+6, uptime+6_000_000) - before
	says(t, clocks, fmt.Sprintf("moves by %s ms after 6 ms of silence", number(int(jump))))

	// As intended: a step forward, and a quarter of an hour.
	g = naive.Guard{Intended: true, Last: epoch / 1000}
	var behind int64
	for ms := int64(0); ms <= 900_000; ms++ {
		wall := epoch/1000 + ms
		if ms >= 10 {
			wall += 320
		}
		behind = wall - g.Now(wall, uptime+ms*1e6)
	}
	says(t, clocks, fmt.Sprintf("is %d ms behind a quarter of an hour after a step of +320 ms", behind))
	// And a step back of 50 ms.
	g = naive.Guard{Intended: true, Last: epoch / 1000}
	var worst, last int64
	for ms := range int64(200) {
		wall := epoch/1000 + ms
		if ms >= 50 {
			wall -= 50
		}
		now := g.Now(wall, uptime+ms*1e6)
		worst, last = max(worst, last-now), now
	}
	says(t, clocks, fmt.Sprintf("goes back by %d ms when it thaws", worst))
}

// The clocks of one machine through a step, a slew, a suspend and a step back.
func TestClocksPicture(t *testing.T) {
	m := clocktest.NewMachine()
	g, err := clock.NewGuard(clock.Config{Source: m})
	if err != nil {
		t.Fatal(err)
	}
	c := &plot.Chart{Title: "the clocks of one machine, and guarded time", X: "true time, minutes", Y: "ahead of true time, ms",
		Steps: []plot.Steps{{Name: "guarded wall time"}, {Name: "wall clock"}, {Name: "monotonic clock"}},
		Marks: []plot.Mark{{Name: "step +320ms", X: 2}, {Name: "slew 500 ppm", X: 14}, {Name: "slew ends", X: 20}, {Name: "suspend 400ms", X: 24}, {Name: "step -500ms", X: 31}}}
	mono0 := int64(m.Mono())
	var last algo.Wall
	for i := range int64(45 * 60 * 10) {
		switch i {
		case 2 * 600:
			m.Step(320 * time.Millisecond)
		case 14 * 600:
			m.Drift(500, 0)
		case 20 * 600:
			m.Drift(0, 0)
		case 24 * 600:
			m.Suspend(400 * time.Millisecond)
		case 31 * 600:
			m.Step(-500 * time.Millisecond)
		}
		m.Advance(100 * time.Millisecond)
		g.Check()
		now := g.Now()
		if now < last {
			t.Fatalf("guarded time went back by %v", time.Duration(last-now))
		}
		last = now
		truth := m.Truth()
		for n, at := range []int64{int64(now), m.Wall(), int64(m.Mono()) - mono0 + clocktest.Epoch} {
			s := &c.Steps[n]
			s.X, s.Y = append(s.X, float64(truth-clocktest.Epoch)/60e9), append(s.Y, float64(at-truth)/1e6)
		}
	}
	picture(t, "clocks.png", 1, c)
}

// A bucket dated by a server's TIME, and a promotion to a replica whose clock is 45 s ahead.
func TestPromotionSentences(t *testing.T) {
	r := naive.Rounding(100, 1)
	drain := func(second int64) (n int) {
		for r.Take(epoch + second*1_000_000) {
			n++
		}
		return n
	}
	drain(0)
	says(t, clocks, fmt.Sprintf("One true second later the replica finds %d units where 1 is right", drain(1+45)))
	drain(2 + 45 - 105)
	says(t, clocks, fmt.Sprintf("goes back 105 s and then forward 60 s mints another %d", drain(2+45-105+60)))
}
