package ledgers

import (
	"slices"
	"strings"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// Snapshot is what the ledgers of a store came to. It is cheap to take.
type Snapshot struct {
	Keys        int64         `json:"keys"`         // in memory
	Syncing     int64         `json:"syncing"`      // of them, those that are not silent
	Calls       int64         `json:"calls"`        // to the store, since the start
	FailedCalls int64         `json:"failed_calls"` // of them, those of which not every reply is known
	Syncs       int64         `json:"syncs"`        // keys in those calls
	Unanswered  int64         `json:"unanswered"`   // of them, those whose reply is not known
	Admitted    uint64        `json:"admitted"`     // requests
	Refused     uint64        `json:"refused"`
	Unavailable uint64        `json:"unavailable"` // that found the ledger spent and the store away
	Full        uint64        `json:"full"`        // that found no room for their key
	Late        int64         `json:"late_units"`  // reported after their window had ended
	KeyCost     int64         `json:"key_cost_ns"` // processor time of a sync of one key, as it is reckoned
	Busy        time.Duration `json:"busy_ns"`     // processor time of syncs since the start, without the client's and the store's
	Limits      []Limit       `json:"limits"`      // by name
}

// Limit is what is known of one limit.
type Limit struct {
	Name      string        `json:"name"`
	Syncing   int64         `json:"syncing"`     // keys
	Asked     time.Duration `json:"sync_ns"`     // the interval as configured
	Interval  time.Duration `json:"interval_ns"` // in force: stretched while keys are many
	Count     int64         `json:"count"`       // units per window
	Bound     int64         `json:"bound"`       // what a window of one key may reach by what was seen in the last minutes
	WorstCase int64         `json:"worst_case"`  // what it may reach whatever happens; 0 if it is not known
	Over      int64         `json:"overshoot"`   // the most that a window of one key was seen to exceed the count by
	Late      int64         `json:"late_units"`  // reported after their window had ended
	Lost      int64         `json:"lost_units"`  // handed out at most, and forgotten by the store
}

// keepTop is how long the largest figures of a time count at least.
const keepTop algo.Mono = 60_000_000_000

// note takes in what the store told about a key.
func (s *Store[L, M, R, P]) note(l *limit, now algo.Mono, f Figures) {
	if f.Used == 0 && f.Late == 0 && f.Lost == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &l.top
	if !t.begun {
		t.begun, t.since = true, now
	}
	if now-t.since > keepTop {
		t.unseen = [2]int64{0, t.unseen[0]}
		if now-t.since > 2*keepTop {
			t.unseen[1] = 0
		}
		t.since = now
	}
	t.unseen[0] = max(t.unseen[0], f.Unseen)
	t.over = max(t.over, f.Used-f.Count)
	t.late += f.Late
	t.lost += f.Lost
}

// Snapshot reads the counters.
func (s *Store[L, M, R, P]) Snapshot() Snapshot {
	c := &s.calls
	v := Snapshot{Busy: time.Duration(c.busy.Load()), Keys: s.keys.Load(), Syncing: s.ticking.Load(), Calls: c.calls.Load(), FailedCalls: c.failed.Load(),
		Syncs: c.syncs.Load(), Unanswered: c.unknown.Load(), KeyCost: c.reckoned()}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		v.Admitted += sh.admitted
		v.Refused += sh.refused
		v.Unavailable += sh.unavailable
		v.Full += sh.full
		sh.mu.Unlock()
	}
	for _, l := range s.all() {
		one := s.figures(l)
		v.Late += one.Late
		v.Limits = append(v.Limits, one)
	}
	slices.SortFunc(v.Limits, func(a, b Limit) int { return strings.Compare(a.Name, b.Name) })
	return v
}

func (s *Store[L, M, R, P]) figures(l *limit) Limit {
	l.mu.Lock()
	t := l.top
	l.mu.Unlock()
	count := l.latest.Load().Core().Capacity()
	v := Limit{Name: l.name, Syncing: l.ticking.Load(), Count: count, Over: t.over, Late: t.late, Lost: t.lost,
		Asked:    time.Duration(l.base.Load()) * time.Microsecond,
		Interval: time.Duration(l.interval.Load()) * time.Microsecond,
		Bound:    count + max(t.unseen[0], t.unseen[1])}
	if s.cfg.Spend != nil { // handed out in advance: never more, unless instances go on alone
		if l.latest.Load().Limit().OnFailure != escapement.LocalShare {
			v.WorstCase = count
		}
	} else if s.cfg.Instances != nil {
		v.WorstCase = count * int64(max(0, s.cfg.Instances()))
	}
	return v
}
