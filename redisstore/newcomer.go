package redisstore

// newcomer finds the line of a deployment before a caller decides anything: from the
// stamps of callers who have it, or, if nobody stamps, from the store's own clock. It is
// pure, as the witness is.
type newcomer struct {
	began bool
	first stamp // the record as found
	last  stamp
	at    int64 // when the last look was received
	since int64 // when the first look was received
}

const (
	alone    = 1_500_000 // µs after which a silent record means that nobody is there
	steady   = 5_000     // µs the store's clock may differ from the own between two looks
	stampGap = 1_000_000 // µs between stamps
)

// look takes in the record as read between send and receive. It reports true once the
// witness has the line.
func (c *newcomer) look(w *witness, name string, send, receive int64, s stamp) bool {
	n := w.node(name)
	n.read, n.epoch, n.recAdj = true, s.epoch, s.adj
	n.raw, n.rawAt = s.raw, receive
	half := (receive-send)/2 + 1
	mid := send + (receive-send)/2
	defer func() { c.last, c.at = s, receive }()
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
	if s.line != c.last.line && s.raw >= s.at && s.raw-s.at <= own+steady && max(elapsed-own, own-elapsed) <= steady+half {
		line := s.line + s.raw - s.at
		n.adj = line - s.raw
		if d := n.adj - s.adj; max(d, -d) <= recordNear {
			n.adj = s.adj
		}
		w.take(line, mid, half)
		return true
	}
	if receive-c.since < alone {
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
