package naive

// Guard freezes time when two readings of the wall clock are more than 5 ms apart or in the
// wrong order, and then goes on by the monotonic clock. As written it forgets to note the
// monotonic instant of the freeze; Intended is what it seems to mean.
type Guard struct {
	Intended bool
	Last     int64 // the last wall reading it believed, in milliseconds
	Frozen   bool
	Jumps    int // freezes

	frozenAt int64
}

// Now is its time in milliseconds, given both clocks: wall in milliseconds, mono in
// nanoseconds since boot.
func (g *Guard) Now(wall, mono int64) int64 {
	if wall-g.Last <= 5 && wall >= g.Last {
		g.Last, g.Frozen = wall, false
		return wall
	}
	if !g.Frozen {
		g.Frozen = true
		g.Jumps++
		if g.Intended {
			g.frozenAt = mono
		}
	}
	return g.Last + max(0, mono-g.frozenAt)/1e6
}

// Elapsed bounds the time between two readings of the wall clock: never negative, never
// more than an hour, less a known skew if that is large. All in milliseconds.
func Elapsed(now, then, knownSkew int64) int64 {
	e := min(max(now-then, 0), 3_600_000)
	if knownSkew > 2000 {
		e = max(e-knownSkew, 0)
	}
	return e
}
