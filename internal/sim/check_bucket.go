package sim

import (
	"slices"

	"github.com/escapement-io/escapement/algo"
)

// checkBucketStamps checks by the buckets of time that instances dated their admissions
// by: never more in some of them than the burst and what comes back from the beginning of
// the first to the end of the last.
func (w *world) checkBucketStamps(count map[int64]int64) {
	l := &w.store.lease
	buckets := make([]int64, 0, len(count))
	for k := range count {
		buckets = append(buckets, k)
	}
	slices.Sort(buckets)
	// over is the largest sum, over all first buckets, of what was admitted less what came
	// back between the beginnings of the first and of this one. A grid coarser than the
	// buckets may bring back a tick's worth early.
	per := l.N * int64(l.Width) // credits that come back in a bucket, in Tick parts
	full := w.bound()*l.P*int64(l.Tick) + per + l.N*int64(l.Tick-1)
	over, last := int64(0), int64(0)
	for _, k := range buckets {
		if k-last > full/per+1 {
			over = 0
		}
		over = max(0, over-(k-last)*per) + count[k]*l.P*int64(l.Tick)
		last = k
		if over > full {
			w.book.wrong("bucket %d: %d units were admitted beyond what comes back, at most the burst of %d are allowed", k, (over-per)/l.P/int64(l.Tick), w.bound())
		}
	}
}

// checkBucketTime charges every admission to a bucket of its own, when the store's clock
// showed that it happened: the bucket is never in debt.
func (w *world) checkBucketTime() {
	slices.SortStableFunc(w.book.admissions, func(a, b admission) int { return int(a.at - b.at) })
	l, s := &w.store.lease, algo.State{}
	for _, a := range w.book.admissions {
		w.store.core.Charge(&s, a.line, a.cost, 0)
		if over := s.A - w.bound()*l.P; over > 0 {
			w.book.wrong("at %v: %d units were admitted beyond what came back, at most the burst of %d are allowed", a.at, s.A/l.P, w.bound())
		}
	}
}
