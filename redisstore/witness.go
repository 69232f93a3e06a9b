package redisstore

import "github.com/escapement-io/escapement/algo"

// The witness holds a store's clock to account by the caller's monotonic clock. It is
// pure: instants come as arguments, in microseconds of the caller's own line.
//
// A caller keeps one mapping from its clock to the deployment's line, and per primary an
// adjustment that is added to what the primary's clock says. A reply that lies on the
// line, given when it was sent and received, renews the mapping. One that does not shows
// that the primary's clock stepped, or that another clock took over: two that agree
// change the adjustment, so that the line goes on as if nothing had happened.
type witness struct {
	known  bool
	offset int64 // line minus own clock
	err    int64 // of the offset, when it was sampled
	at     int64 // when, on the own clock
	nodes  map[string]*node
	rtt    quantile
	tally  tally
}

// node is a primary.
type node struct {
	adj    int64 // added to its raw clock gives the line
	epoch  int64 // of its shard's record
	recAdj int64 // of the record
	read   bool  // whether the record has been read
	seen   int   // replies in a row off the line that agree
	dev    int64 // how far off, by the quickest of them
	half   int64 // and its uncertainty
	raw    int64 // last raw reading
	rawAt  int64 // when it was received
}

type tally struct {
	Outside  uint64 // replies off the line
	Steps    uint64
	LastStep int64
	Clamped  uint64
	Adopted  uint64 // epochs taken over
	Lost     uint64 // times the caller itself had lost time
}

const (
	driftPPM    = 200
	allowance   = 2_000   // µs a call may take beyond the usual
	agree       = 2_000   // µs two deviations may differ besides their uncertainty
	precise     = 2_000   // µs of uncertainty that a step is believed with at once
	enough      = 8       // replies that are believed whatever their uncertainty
	recordNear  = 8_000   // µs an adjustment may differ from the record's
	recordFresh = 100_000 // and from that of a record that others have just changed
	lostBy      = 50_000  // µs another caller's stamp may be ahead
	rttCap      = 50_000
)

func newWitness() *witness { return &witness{nodes: map[string]*node{}} }

func (w *witness) node(name string) *node {
	n := w.nodes[name]
	if n == nil {
		n = &node{}
		w.nodes[name] = n
	}
	return n
}

// line is an instant of the own clock on the line.
func (w *witness) line(local int64) int64 { return local + w.offset }

// spread is how far the mapping can be wrong at an instant of the own clock.
func (w *witness) spread(local int64) int64 {
	age := local - w.at
	return w.err + max(age, -age)*driftPPM/1_000_000 + 1
}

// slack is how long a call may be under way and still be dated by the store's clock.
func (w *witness) slack() int64 { return allowance + min(rttCap, w.rtt.high()) }

// error is e: how far ahead of the line a decision can be dated.
func (w *witness) error(local int64) int64 { return w.spread(local) + w.slack() }

// bounds are what can be vouched for of a call that is sent now; false before the first
// sample.
func (w *witness) bounds(name string, local int64) (bounds, bool) {
	if !w.known {
		return bounds{}, false
	}
	s, e := w.line(local), w.spread(local)
	return bounds{lo: algo.Store(s - e), hi: algo.Store(s + e + w.slack()), adj: w.node(name).adj}, true
}

// take begins a line: at own instant mid it stood at line, give or take err.
func (w *witness) take(line, mid, err int64) {
	w.known, w.offset, w.err, w.at = true, line-mid, err, mid
}

// reply takes in that a primary read raw between the instants send and receive.
func (w *witness) reply(name string, send, receive, raw int64) {
	w.rtt.add(receive - send)
	n := w.node(name)
	n.raw, n.rawAt = raw, receive
	if !w.known {
		return
	}
	half := (receive-send)/2 + 1
	mid := send + (receive-send)/2
	e := w.spread(receive)
	x := raw + n.adj
	if x >= w.line(send)-e && x <= w.line(receive)+e {
		n.seen = 0
		if half <= e {
			w.take(x, mid, half)
		}
		return
	}
	w.tally.Outside++
	dev := x - w.line(mid)
	if d := dev - n.dev; n.seen > 0 && max(d, -d) > half+n.half+agree {
		n.seen = 0
	}
	if n.seen == 0 || half < n.half {
		n.dev, n.half = dev, half
	}
	n.seen++
	if n.seen < 2 || n.half > precise && n.seen < enough {
		return
	}
	n.seen = 0
	n.adj -= n.dev
	w.tally.Steps++
	w.tally.LastStep = n.dev
}

// vote is how far raw time and the record's adjustment are ahead of the line, if that is
// more than errors of measurement.
func (w *witness) vote(name string) (int64, bool) {
	n := w.node(name)
	d := n.recAdj - n.adj
	return d, n.read && max(d, -d) > recordNear
}

// stamp is what line.lua answers.
type stamp struct {
	raw, epoch, adj int64
	line, at        int64 // the last stamp, and the raw reading it was made at
	other           bool  // it was another caller's
	callers         int
}

// recorded takes in the record of a primary's shard, which was asked for between send and
// receive. It reports false if another caller's stamp proves that this one lost time.
func (w *witness) recorded(name string, send, receive int64, s stamp) bool {
	w.reply(name, send, receive, s.raw)
	n := w.node(name)
	fresh := n.read && n.epoch != s.epoch
	if fresh {
		w.tally.Adopted++
	}
	n.read, n.epoch, n.recAdj = true, s.epoch, s.adj
	near := int64(recordNear)
	if fresh {
		near = recordFresh
	}
	if d := n.adj - s.adj; d != 0 && max(d, -d) <= near {
		n.adj, n.seen = s.adj, 0
		w.err += max(d, -d)
	}
	if s.other && s.line > w.line(receive)+w.spread(receive)+lostBy {
		w.tally.Lost++
		return false
	}
	return true
}

// quantile keeps a high quantile of round trips: 99.9 % of recent ones are not above it.
type quantile struct {
	counts [64]uint32 // by eighths of octaves from 16 µs
	total  uint32
}

func (q *quantile) add(us int64) {
	i := 0
	for v := max(us, 0); v >= 32 && i < 56; v >>= 1 {
		i += 4
		if v < 64 {
			i += int(v-32) / 8
		}
	}
	q.counts[min(i, 63)]++
	if q.total++; q.total >= 1<<14 {
		q.total = 0
		for i := range q.counts {
			q.counts[i] /= 2
			q.total += q.counts[i]
		}
	}
}

func (q *quantile) high() int64 {
	left := q.total / 1000
	for i := 63; i >= 0; i-- {
		if q.counts[i] > left {
			return int64(32+8*(i%4)+8) << (i / 4) >> 1
		}
		left -= q.counts[i]
	}
	return 0
}
