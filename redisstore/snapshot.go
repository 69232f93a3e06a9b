package redisstore

import (
	"sort"
	"time"
)

// Snapshot is the state of a store at one moment, for metrics and for people.
type Snapshot struct {
	Mode    Mode          `json:"mode"`
	Dated   string        `json:"dated"` // "store", or "caller" where scripts may not ask for the time
	Known   bool          `json:"line_known"`
	Line    int64         `json:"line_us"`
	Error   time.Duration `json:"error_ns"` // e: how far ahead of the line a decision can be dated
	Sample  time.Duration `json:"sample_error_ns"`
	RTT     time.Duration `json:"rtt_p999_ns"`
	Outside uint64        `json:"replies_off_the_line"`
	Clamped uint64        `json:"clamped"`
	Steps   uint64        `json:"steps"`
	Last    time.Duration `json:"last_step_ns"`
	Adopted uint64        `json:"adopted"`
	Lost    uint64        `json:"lost_time"`
	// Primaries are the servers that serve keys.
	Primaries []PrimarySnapshot `json:"primaries"`
	Instances int               `json:"instances"` // 0 if not known
	Findings  []string          `json:"findings,omitempty"`
}

// PrimarySnapshot is one server as this store sees it.
type PrimarySnapshot struct {
	Name       string        `json:"name"`
	Open       bool          `json:"breaker_open"`
	Queued     int           `json:"queued"`
	InFlight   int           `json:"in_flight"`
	Calls      uint64        `json:"calls"`
	Requests   uint64        `json:"requests"`
	Failed     uint64        `json:"failed_calls"`
	Unknown    uint64        `json:"unknown"`
	NotRun     uint64        `json:"not_run"`
	Adjustment time.Duration `json:"adjustment_ns"` // added to its clock gives the line
	Offset     time.Duration `json:"offset_ns"`     // its clock minus this machine's
	Epoch      int64         `json:"epoch"`
}

// Snapshot returns the state at this moment.
func (s *Store) Snapshot() Snapshot {
	now := int64(s.line.Now())
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	s.mu.Lock()
	w := s.witness
	out := Snapshot{Mode: s.cfg.Mode, Dated: "store", Known: w.known, Outside: w.tally.Outside, Clamped: w.tally.Clamped,
		Steps: w.tally.Steps, Last: us(w.tally.LastStep), Adopted: w.tally.Adopted, Lost: w.tally.Lost, RTT: us(w.rtt.high()), Findings: s.Findings()}
	if w.known {
		out.Line, out.Error, out.Sample = w.line(now), us(w.error(now)), us(w.spread(now))
	}
	nodes := map[string]node{}
	for name, n := range w.nodes {
		nodes[name] = *n
	}
	s.mu.Unlock()
	out.Instances, _ = s.Instances()
	if s.unasked {
		out.Dated = "caller"
	}
	for _, sh := range s.topology.Load().shards {
		sh.mu.Lock()
		p := PrimarySnapshot{Name: sh.name, Open: sh.breaker.open, Queued: len(sh.queue) - sh.head, InFlight: sh.riding}
		sh.mu.Unlock()
		p.Calls, p.Requests, p.Failed = sh.calls.Load(), sh.requests.Load(), sh.failed.Load()
		p.Unknown, p.NotRun = sh.unknown.Load(), sh.dropped.Load()
		n := nodes[sh.name]
		p.Adjustment, p.Epoch = us(n.adj), n.epoch
		if n.raw != 0 {
			p.Offset = us(n.raw - n.rawAt)
		}
		out.Primaries = append(out.Primaries, p)
	}
	sort.Slice(out.Primaries, func(i, j int) bool { return out.Primaries[i].Name < out.Primaries[j].Name })
	return out
}
