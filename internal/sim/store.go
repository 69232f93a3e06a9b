package sim

import (
	"slices"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// epoch is where the store's line begins: a multiple of every window up to a day.
const epoch = 20_000 * 24 * time.Hour

// store is the shared store: one key, its record, and a clock of its own.
type store struct {
	w       *world
	core    *algo.Plan
	lease   algo.Lease
	clock   clockFault
	record  record
	counted map[algo.Store]int64 // delayed: units in each window, as last recorded
	applied map[int64]int64      // delayed: the last flush of each instance
	late    int64                // delayed: units that came after their window
	forgot  int64                // leases: units handed out that a failover forgot
	lost    bool                 // a failover forgot something
	behind  int64                // leases: by how much failovers set the version back
	noticed int64                // leases: by how much asks noticed
	charged map[int64]int64      // fixed leases: units charged to each window, at most
}

// record is what a failover takes back. Only the one of the mode is in use.
type record struct {
	fixed   algo.FixedLease
	rolling algo.RollingLease
	bucket  algo.BucketLease
	delayed algo.Delayed
	granted int64 // leases: units handed out, ever
}

func (r *record) clone() record {
	c := *r
	c.rolling.Charged, c.rolling.From = slices.Clone(r.rolling.Charged), slices.Clone(r.rolling.From)
	c.bucket.Charged, c.bucket.From = slices.Clone(r.bucket.Charged), slices.Clone(r.bucket.From)
	c.delayed.Seen = slices.Clone(r.delayed.Seen)
	return c
}

// version is that of the record in use.
func (r *record) version() int64 { return max(r.fixed.Ver, r.rolling.Ver, r.bucket.Ver) }

// line is what the store's clock shows.
func (s *store) line() algo.Store {
	return algo.Store((epoch + s.clock.wall(s.w.now)) / time.Microsecond)
}

// plan schedules the failovers.
func (s *store) plan(w *world) {
	for _, f := range w.setup.Store.Failovers {
		var old record
		w.at(f.At-f.Loses, func() { old = s.record.clone() })
		w.at(f.At, func() {
			s.forgot += s.record.granted - old.granted
			s.lost = true
			s.behind += s.record.version() - old.version()
			s.record = old.clone()
		})
	}
}

func (s *store) sync(a *algo.Ask) *algo.Grant {
	var g algo.Grant
	if s.lease.IsBucket() {
		g = s.lease.SyncBucket(&s.record.bucket, s.line(), a)
	} else if s.lease.Width > 0 {
		g = s.lease.SyncRolling(&s.record.rolling, s.line(), a)
	} else {
		g = s.lease.SyncFixed(&s.record.fixed, s.line(), a)
		s.charged[g.Window] = max(s.charged[g.Window], s.record.fixed.Given)
		s.charged[g.Window+1] = max(s.charged[g.Window+1], s.record.fixed.Next)
	}
	s.noticed += g.Lost
	n := g.Units + g.Next
	for _, l := range g.Lots {
		n += l.Units
	}
	if g.Admitted {
		n += a.Exact
	}
	s.record.granted += n
	return &g
}

func (s *store) flush(f *algo.Flush) *algo.Flushed {
	r := &s.record.delayed
	g := s.core.Flush(r, s.line(), f)
	if f.Number > s.applied[f.Instance] { // a repetition that was forgotten is late once more
		s.applied[f.Instance] = f.Number
		s.late += g.Late
	}
	s.counted[r.Start] = r.Used
	if s.core.Algorithm() == algo.SlidingWindow && r.Before > 0 {
		_, per := s.core.Rate()
		s.counted[r.Start-algo.Store(per)] = r.Before
	}
	return &g
}
