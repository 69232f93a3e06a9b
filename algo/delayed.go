package algo

// Delayed synchronisation: each instance admits against a remaining that it was told,
// counts, and reports later. Every count arrives, and none twice; between two reports
// instances do not see each other, so together they admit more than the limit.

// Flush reports what one instance admitted since its last one. It is repeated unchanged
// until it is answered; the number tells a repetition from a new one.
type Flush struct {
	Instance int64 // of one process: below 2^53, not zero
	Number   int64 // from 1, growing with every new flush of the instance
	Interval Span  // a report so long after its window's end is on time
	Parts    []Spent
}

// Spent is units that were admitted in the window that starts at Window.
type Spent struct {
	Window Store
	Units  int64
}

// Flushed is the answer to a Flush.
type Flushed struct {
	At        Store
	Window    Store // the start of the window that is open
	Rest      Span  // until it ends
	Used      int64 // in it, by all instances, as far as they reported
	Remaining int64 // after the weight of the window before; 0 if less
	Late      int64 // units of this flush whose window counts no more
}

// Delayed is the record of a key whose instances report. The zero record is fresh.
type Delayed struct {
	At           Store       // the latest instant seen; time before it counts as it
	Start        Store       // of the open window
	Used, Before int64       // in it, and in the one just before it
	Open         bool        // Start means something
	Seen         []SeenFlush // the last flush of each instance
}

// SeenFlush remembers the last flush of an instance for two periods; by then every
// window that a repetition could be about is closed.
type SeenFlush struct {
	Instance, Number int64
	At               Store
}

// Flush adds what a flush reports to the windows it happened in, once however often it
// arrives, and tells what is left. The plan is a fixed_window, of which one opened by
// first use opens with the first flush, or a sliding_window.
func (p *Plan) Flush(r *Delayed, now Store, f *Flush) Flushed {
	now = max(now, r.At)
	r.At = now
	end := p.open(r, now)
	answer := Flushed{At: now, Window: r.Start, Rest: Span(end - now)}
	fresh := r.number(f, now-2*Store(p.length(r.Start, end)))
	for _, part := range f.Parts {
		answer.Late += p.report(r, now, part, max(0, f.Interval), fresh)
	}
	answer.Used = r.Used
	left := p.count - r.Used
	if p.algorithm == SlidingWindow && left > 0 {
		left -= p.weighted(min(r.Before, p.count), r.Start, now)
	}
	answer.Remaining = max(0, left)
	return answer
}

// length is the period, or of a calendar the length of the open window.
func (p *Plan) length(start, end Store) Span {
	if p.calendar != nil {
		return Span(end - start)
	}
	return p.per
}

// open makes the window that holds now the open one and returns its end.
func (p *Plan) open(r *Delayed, now Store) (end Store) {
	if r.Open {
		if _, end = p.windowAt(r.Start); now < end {
			return end
		}
	}
	start, stop := p.window(now)
	r.Before = 0
	if r.Open && start == end {
		r.Before = r.Used
	}
	r.Start, r.Used, r.Open = start, 0, true
	return stop
}

// report counts a part and returns how much of it comes too late. What was admitted at
// the end of a window and is reported in the next one, on time, counts where it arrives;
// it is what those who were told of the new window do not know yet. So does what an
// instance whose clock runs ahead admitted in the next window already. After an outage a
// report counts where it happened.
func (p *Plan) report(r *Delayed, now Store, part Spent, interval Span, fresh bool) (late int64) {
	if !fresh {
		return 0
	}
	units, counter := max(0, part.Units), &r.Used
	_, end := p.windowAt(part.Window)
	switch {
	case part.Window >= r.Start:
	case now < end+Store(interval):
	case p.algorithm == SlidingWindow && end == r.Start:
		counter = &r.Before
	default:
		return units
	}
	*counter += min(units, p.most-*counter)
	return 0
}

// number reports whether a flush is new, and remembers it; instances not heard of since
// oldest are forgotten.
func (r *Delayed) number(f *Flush, oldest Store) (fresh bool) {
	kept := r.Seen[:0]
	fresh, known := true, false
	for _, s := range r.Seen {
		switch {
		case s.Instance == f.Instance:
			known, fresh = true, f.Number > s.Number
			s.Number, s.At = max(s.Number, f.Number), r.At
		case s.At <= oldest:
			continue
		}
		kept = append(kept, s)
	}
	if !known {
		kept = append(kept, SeenFlush{f.Instance, f.Number, r.At})
	}
	r.Seen = kept
	return fresh
}
