package sim

import (
	"slices"
	"time"

	"github.com/escapement-io/escapement/lease"
)

// The promises, checked in every world:
//
//   - leases: never more than the limit in a window, counted by the window or bucket that
//     the instance charged, and, unless the store's clock steps, by true time; plus what
//     was handed out and forgotten where a failover loses writes; of a bucket, never more
//     in any span than the burst and what comes back in it;
//   - leases that go on without the store: each instance within its part of the limit;
//   - delayed: never more than the limit per instance and window; without faults, never
//     more than the limit and what the other instances can admit between two reports;
//   - nothing is charged twice, and nothing is lost but what a crash or a failover took;
//   - a request is decided once, as a whole, and within the longest wait;
//   - no more calls than one per interval and the extras.

func (w *world) check(requests []request) {
	s := w.setup
	if s.Mode == Delayed {
		w.checkDelayed(requests)
		w.checkCounted()
	} else {
		w.checkStamps()
		w.checkTime()
	}
	if s.Mode == Leased {
		w.checkCalls()
		w.checkSettled()
		w.checkParts()
		w.checkLost()
	}
	undecided := 0
	for i := range requests {
		if r := &requests[i]; !r.decided && r.at <= s.For {
			undecided++
		}
	}
	if undecided > 0 && len(s.Crashes) == 0 && s.Mode != Exact && s.Exact == 0 {
		w.book.wrong("%d requests were never decided", undecided)
	}
}

// bound is what leases hold to.
func (w *world) bound() int64 {
	return w.store.lease.Count + w.store.forgot
}

// stamps is the units charged to each window or bucket.
func (w *world) stamps() map[int64]int64 {
	m := map[int64]int64{}
	for _, a := range w.book.admissions {
		if !a.open && a.part == 0 {
			m[a.stamp] += a.cost
		}
	}
	return m
}

func (w *world) checkStamps() {
	l, most := &w.store.lease, w.bound()
	count := w.stamps()
	if l.IsBucket() {
		w.checkBucketStamps(count)
		return
	}
	if l.Width == 0 {
		for k, n := range count {
			if n > most {
				w.book.wrong("window %d: %d were admitted, limit %d", k, n, most)
			}
			if charged := w.store.charged[k]; n > charged+w.store.forgot {
				w.book.wrong("window %d: %d were admitted and %d charged", k, n, charged)
			}
		}
		return
	}
	buckets := make([]int64, 0, len(count))
	for k := range count {
		buckets = append(buckets, k)
	}
	slices.Sort(buckets)
	from, in := 0, int64(0)
	for _, k := range buckets {
		in += count[k]
		for ; buckets[from] < k-l.Buckets; from++ {
			in -= count[buckets[from]]
		}
		if in > most {
			w.book.wrong("buckets %d to %d: %d were admitted, limit %d", k-l.Buckets, k, in, most)
		}
	}
}

func (w *world) checkTime() {
	s := w.setup
	if len(s.Store.Steps) > 0 || s.Mode == Exact || s.Exact > 0 || s.OpenUp || w.book.parted() {
		return // what the backend sees is then bounded by nothing, or dated by the reply
	}
	most := w.bound()
	if s.Window == Bucket {
		w.checkBucketTime()
		return
	}
	if s.Window == Fixed {
		count := map[int64]int64{}
		for _, a := range w.book.admissions {
			count[w.window(a.at)] += a.cost
		}
		for k, n := range count {
			if n > most {
				w.book.wrong("true window %d: %d were admitted, limit %d", k, n, most)
			}
		}
		return
	}
	slices.SortStableFunc(w.book.admissions, func(a, b admission) int { return int(a.at - b.at) })
	if n := w.anySpan(); n > most {
		w.book.wrong("%d were admitted within %v, limit %d", n, s.Per, most)
	}
}

// checkSettled compares what a rolling window has charged with what was admitted, bucket
// by bucket, once every instance has given back the rest. Lots that were not usable yet
// when their holder left stay charged to buckets after the end.
func (w *world) checkSettled() {
	s, l := w.setup, &w.store.lease
	if l.Width == 0 || l.IsBucket() || w.lost > 0 || len(s.Crashes) > 0 || len(s.Store.Steps) > 0 || len(s.Store.Failovers) > 0 {
		return
	}
	count, r := w.stamps(), &w.store.record.rolling
	size, last := int64(len(r.Charged)), int64(r.At)/int64(l.Width)
	end := int64((epoch+s.Store.Offset+s.For)/time.Microsecond) / int64(l.Width)
	for j := last - l.Buckets; size > 0 && j < min(end, last+1); j++ {
		if got := r.Charged[j%size]; got != count[j] {
			w.book.wrong("bucket %d, at %d: %d are charged, %d were admitted", j, last, got, count[j])
		}
	}
}

func (w *world) checkCalls() {
	s := w.setup
	extras := s.Extras
	if extras == 0 {
		extras = lease.DefaultExtras
	}
	intervals := int64(w.now/s.Sync) + 2
	for _, n := range w.nodes[:s.Instances-s.Exact] {
		if most := intervals * int64(1+max(1, extras)); n.trips > most {
			w.book.wrong("instance %d made %d calls in %d intervals, at most %d are allowed", n.id, n.trips, intervals, most)
		}
	}
}

func (w *world) checkDelayed(requests []request) {
	s := w.setup
	count := w.stamps()
	most := s.Limit * int64(s.Instances)
	calm := s.Network.Loss == 0 && len(s.Store.Outages) == 0 && len(s.Store.Failovers) == 0 && len(s.Store.Steps) == 0 &&
		len(s.Pauses) == 0 && len(s.Crashes) == 0 && s.Window != Sliding
	if calm {
		most = min(most, s.Limit+w.blind(requests))
	}
	for k, n := range count {
		if n > most {
			w.book.wrong("window %d: %d were admitted, at most %d are possible", k, n, most)
		}
	}
}

// blind is what all instances but one can admit while that one does not hear of it: what
// arrives at them in two intervals and the round trips between, for a report that has
// just missed the reply speaks of the interval before.
func (w *world) blind(requests []request) int64 {
	s := w.setup
	span := 2*(s.Sync+s.Network.Timeout) + s.Sync/1000
	most := make([]int64, s.Instances)
	in, from := make([]int64, s.Instances), make([][]*request, s.Instances)
	for i := range requests {
		r := &requests[i]
		k := r.instance
		from[k] = append(from[k], r)
		in[k] += r.cost
		for from[k][0].at < r.at-span {
			in[k] -= from[k][0].cost
			from[k] = from[k][1:]
		}
		most[k] = max(most[k], in[k])
	}
	sum := int64(0)
	for _, n := range most {
		sum += n
	}
	return sum - slices.Min(most)
}

// checkCounted compares what the store counted with what was admitted, once every
// instance has reported.
func (w *world) checkCounted() {
	s := w.setup
	if len(s.Crashes) > 0 || w.store.lost || len(s.Store.Steps) > 0 {
		return
	}
	counted := w.store.late
	for _, n := range w.store.counted {
		counted += n
	}
	admitted := int64(0)
	for _, a := range w.book.admissions {
		if !a.open {
			admitted += a.cost
		}
	}
	if out := s.Store.Outages; counted != admitted && (len(out) == 0 || out[len(out)-1].At+out[len(out)-1].For < s.For+30*time.Second) {
		w.book.wrong("%d were admitted and %d counted, %d of them late", admitted, counted, w.store.late)
	}
}
