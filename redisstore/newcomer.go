package redisstore

// newcomer finds the line of a deployment before a caller decides anything: from the
// stamps of callers who have it, or, if nobody stamps, from the store's own clock. It is
// pure, as the witness is.
type newcomer struct {
	began bool
	first stamp // the record as found
	last  stamp
	at    int64 // when the last look was received
	half  int64 // half of its round trip
	since int64 // when the first look was received
	looks int
}

const (
	alone    = 1_500_000 // µs after which a silent record means that nobody is there
	steady   = 5_000     // µs the store's clock may differ from the own between two looks
	stampGap = 1_000_000 // µs between stamps
	// patientLooks is how often quick looks are hoped for.
	patientLooks = 60
)

// look takes in the record as read between send and receive. It reports true once the
// witness has the line.
func (c *newcomer) look(w *witness, name string, send, receive int64, s stamp) bool {
	n := w.node(name)
	n.read, n.epoch, n.recAdj = true, s.epoch, s.adj
	n.raw, n.rawAt = s.raw, receive
	half := (receive-send)/2 + 1
	mid := send + (receive-send)/2
	defer func() { c.last, c.at, c.half, c.looks = s, receive, half, c.looks+1 }()
	if !c.began {
		c.began, c.first, c.since = true, s, receive
		if s.line == 0 {
			// Nobody ever stamped.
			n.adj = s.adj
			w.take(s.raw+s.adj, mid, half)
			return true
		}
		return false
	}
	elapsed, own := s.raw-c.last.raw, receive-c.at
	// Between two looks the store's clock must have gone as the own did, or it stepped. How
	// well that is known depends on the looks; slow ones count only if all are slow.
	loose := steady + 2*(half+c.half)
	if loose > 5*steady && c.looks < patientLooks {
		return false
	}
	if s.line != c.last.line && s.raw >= s.at && s.raw-s.at <= own+loose && max(elapsed-own, own-elapsed) <= loose {
		line := s.line + s.raw - s.at
		n.adj = line - s.raw
		if d := n.adj - s.adj; max(d, -d) <= recordNear {
			n.adj = s.adj
		}
		w.take(line, mid, half)
		return true
	}
	if receive-c.since < alone || s.line != c.first.line {
		return false
	}
	// Alone: the store's clock as the record has it, but never before a stamp: states may
	// be dated up to one interval after it.
	n.adj = s.adj
	if least := s.line + stampGap; s.raw+n.adj < least {
		n.adj = least - s.raw
	}
	w.take(s.raw+n.adj, mid, half)
	return true
}
