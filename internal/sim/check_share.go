package sim

import "slices"

// checkParts: what an instance admits without the store lies within its part of the limit,
// as the store told it once, and what it admits from leases of the same window counts. So
// a window holds at most the limit from leases, and the parts of those that go on alone.
// Windows are not comparable over a step of the store's clock.
func (w *world) checkParts() {
	s, l := w.setup, &w.store.lease
	if !s.Share || len(s.Store.Steps) > 0 {
		return
	}
	type spot struct {
		node  int
		stamp int64
	}
	count := map[spot]int64{}
	for _, a := range w.book.admissions {
		count[spot{a.node, a.stamp}] += a.cost
		if a.part == 0 {
			continue
		}
		if told := w.told(a.node); !slices.Contains(told, a.part) {
			w.book.wrong("instance %d admits within %d units, and was told %d", a.node, a.part, told)
		}
		in := int64(0)
		for k := a.stamp - l.Buckets; k <= a.stamp; k++ {
			if l.Width > 0 || k == a.stamp {
				in += count[spot{a.node, k}]
			}
		}
		if in > a.part {
			w.book.wrong("instance %d, window to %d: %d were admitted without the store, its part is %d", a.node, a.stamp, in, a.part)
		}
	}
}

// told are the parts that the store told an instance.
func (w *world) told(instance int) []int64 {
	l, _ := w.nodes[instance].limit.(*leased)
	if l == nil {
		return nil
	}
	return l.told
}

// parted reports whether something was admitted by a part of the limit.
func (b *book) parted() bool {
	return slices.ContainsFunc(b.admissions, func(a admission) bool { return a.part > 0 })
}

// checkLost: what the store says that it has forgotten was in what failovers took.
func (w *world) checkLost() {
	if s := w.store; s.noticed > s.behind {
		w.book.wrong("the store is said to have lost %d, and was set back by %d", s.noticed, s.behind)
	}
}
