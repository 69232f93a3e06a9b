package naive

const (
	halfSecond = 500_000 // µs
	ringLength = 20      // buckets: ten seconds of statistics
)

// Window admits Limit per second by the counts of the last two half seconds, kept in a ring
// of buckets that are found by the wall clock. A bucket of the past that the ring has
// reused for a later time is not counted in.
type Window struct {
	Limit int64
	// Bucket is half the period, in µs; half a second unless given.
	Bucket int64

	start, count [ringLength]int64
}

// Take implements Recipe.
func (w *Window) Take(us int64) bool {
	bucket := w.Bucket
	if bucket == 0 {
		bucket = halfSecond
	}
	current := us - us%bucket
	sum := int64(0)
	for i := range w.start {
		if w.start[i] == current || w.start[i] == current-bucket {
			sum += w.count[i]
		}
	}
	if sum >= w.Limit {
		return false
	}
	i := us / bucket % ringLength
	if current > w.start[i] {
		w.start[i], w.count[i] = current, 0
	}
	if current == w.start[i] {
		w.count[i]++
	}
	return true
}

// Spacing lets one unit pass each Interval (µs) and refuses what comes earlier, by the wall
// clock.
type Spacing struct {
	Interval int64

	passed int64
}

// Take implements Recipe.
func (s *Spacing) Take(us int64) bool {
	if us < s.passed+s.Interval {
		return false
	}
	s.passed = us
	return true
}
