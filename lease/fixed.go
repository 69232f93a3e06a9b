package lease

import "github.com/escapement-io/escapement/algo"

// fixed holds units of two windows: the one that is on and, handed out ahead, the next.
// A unit is spent only when the whole uncertainty about the store's line lies in its
// window; while a boundary may be passing, one unit of each window is.
type fixed struct{ slots [2]slot }

type slot struct {
	window  int64
	units   int64 // held
	granted int64 // in all, less what was given back
}

func (f *fixed) reset() { f.slots = [2]slot{{window: -2}, {window: -1}} }

// of is the slot of a window, nil if its place holds a later one.
func (f *fixed) of(window int64) *slot {
	s := &f.slots[window&1]
	if s.window < window {
		*s = slot{window: window}
	}
	if s.window > window {
		return nil
	}
	return s
}

func (f *fixed) take(per algo.Span, lo, hi algo.Store, cost int64) (window int64, crossing algo.Mono, ok bool) {
	for i := range f.slots {
		// No division: this is the path of most requests.
		s := &f.slots[i]
		if start := algo.Store(s.window * int64(per)); lo >= start && hi < start+algo.Store(per) {
			if s.units < cost {
				return 0, 0, false
			}
			s.units -= cost
			return s.window, 0, true
		}
	}
	a, b := int64(lo)/int64(per), int64(hi)/int64(per)
	if a == b {
		s := &f.slots[a&1]
		if s.window != a || s.units < cost {
			return 0, 0, false
		}
		s.units -= cost
		return a, 0, true
	}
	if b == a+1 {
		s, t := &f.slots[a&1], &f.slots[b&1]
		if s.window == a && t.window == b && s.units >= cost && t.units >= cost {
			s.units -= cost
			t.units -= cost
			return b, 0, true
		}
	}
	return 0, algo.Mono(b*int64(per)-int64(lo)+1) * 1000, false
}

func (f *fixed) usable(per algo.Span, lo, hi algo.Store) int64 {
	a, b := int64(lo)/int64(per), int64(hi)/int64(per)
	s, t := &f.slots[a&1], &f.slots[b&1]
	if s.window != a || t.window != b {
		return 0
	}
	return min(s.units, t.units)
}

func (f *fixed) putBack(window, units int64) int64 {
	s := &f.slots[window&1]
	if s.window != window {
		return 0
	}
	units = min(units, s.granted-s.units)
	s.units += units
	return units
}

func (f *fixed) held() int64 { return f.slots[0].units + f.slots[1].units }

// expire drops units of windows before the one given.
func (f *fixed) expire(window int64) {
	for i := range f.slots {
		if s := &f.slots[i]; s.window < window {
			s.units, s.granted = 0, 0
		}
	}
}

func (f *fixed) add(window, units int64) {
	if s := f.of(window); s != nil {
		s.units += units
		s.granted += units
	}
}

// fill asks for the need until the window ends and, if the ask after this one comes too
// late for it, for the beginning of the next window. A tick gives back what is too much.
func (f *fixed) fill(a *algo.Ask, per algo.Span, c forecast, at position, tick bool) {
	if !at.known {
		a.Want = c.need(c.ahead) + c.waiting
		return
	}
	a.Window = int64(at.lo) / int64(per)
	f.of(a.Window + 1)
	now, next := f.of(a.Window), f.of(a.Window+1)
	needed, later := c.need(c.ahead), int64(0)
	end := algo.Mono((a.Window+1)*int64(per)-int64(at.lo+at.hi)/2) * 1000
	if end < c.ahead {
		needed, later = c.need(end), c.need(c.ahead-max(0, end))
	}
	needed += c.waiting
	if int64(at.hi)/int64(per) > a.Window { // who waits for a boundary needs units of both windows
		later += c.waiting
	}
	if now == nil || next == nil {
		a.Want = needed
		return
	}
	if surplus := now.units - needed; surplus > 0 && tick {
		a.Return = surplus
		now.units -= surplus
		now.granted -= surplus
	} else {
		a.Want = max(0, -surplus)
	}
	a.WantNext = max(0, later-next.units)
	a.Have, a.HaveNext = now.granted, next.granted
}
