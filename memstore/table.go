package memstore

import "math/bits"

// slot is one record: the key's hash, never 0, and the words of record.go.
type slot struct {
	hash uint64
	w    [3]uint64
}

const slotBytes = 32

// table is an open-addressed table in ascending order of hash: a slot's home grows with its
// hash, so a search ends at the first larger hash, and growing, shrinking and sweeping are
// one pass from front to back. It has no pointers. Behind the homes lies some slack, and
// behind that one slot that stays empty.
type table struct {
	slots []slot
	size  uint64 // number of homes
	used  int
	texts []uint32 // with keys: where each slot's key stands in the text; as long as slots
}

var noSlots [1]slot

const (
	minSize  = 8
	maxSlack = 32
)

// home is where a hash belongs. The shard is chosen by the low bits, this by the high ones.
func (t *table) home(hash uint64) int {
	hi, _ := bits.Mul64(hash, t.size)
	return int(hi)
}

// find is the place of a hash: its slot, or where it has to be inserted.
func (t *table) find(hash uint64) (i int, ok bool) {
	hi, _ := bits.Mul64(hash, t.size)
	for i = int(hi); ; i++ {
		// An empty slot is 0 and wraps around to more than any hash.
		if x := t.slots[i].hash; x-1 >= hash {
			return i, false
		} else if x == hash {
			return i, true
		}
	}
}

// crowded reports whether one more record would take the load above 0.8.
func (t *table) crowded() bool { return t.used >= int(t.size-t.size/5) }

// insert makes room at the place that find gave. It fails if the last home's neighbours
// have used up the slack; the table must then grow.
func (t *table) insert(i int, hash uint64) bool {
	end := i
	for t.slots[end].hash != 0 {
		end++
	}
	if end == len(t.slots)-1 {
		return false
	}
	copy(t.slots[i+1:end+1], t.slots[i:end])
	t.slots[i] = slot{hash: hash}
	if t.texts != nil {
		copy(t.texts[i+1:end+1], t.texts[i:end])
		t.texts[i] = 0
	}
	t.used++
	return true
}

// remove closes the gap, so that no slot lies behind an empty one it would be sought past.
func (t *table) remove(i int) {
	end := i + 1
	for t.slots[end].hash != 0 && t.home(t.slots[end].hash) < end {
		end++
	}
	copy(t.slots[i:end-1], t.slots[i+1:end])
	t.slots[end-1] = slot{}
	if t.texts != nil {
		copy(t.texts[i:end-1], t.texts[i+1:end])
	}
	t.used--
}

// filter drops every slot that keep refuses, in one pass and in place. keep may change the
// words of its slot.
func (t *table) filter(keep func(i int) bool) {
	next := 0
	for i := range t.slots {
		if t.slots[i].hash == 0 {
			continue
		}
		if !keep(i) {
			t.slots[i] = slot{}
			t.used--
			continue
		}
		to := max(next, t.home(t.slots[i].hash))
		next = to + 1
		if to == i {
			continue
		}
		t.slots[to], t.slots[i] = t.slots[i], slot{}
		if t.texts != nil {
			t.texts[to] = t.texts[i]
		}
	}
}

// resize moves all slots to a table with room for size homes.
func (t *table) resize(size uint64, keyed bool) {
	for {
		n := table{slots: make([]slot, size+min(size, maxSlack)+1), size: size, used: t.used}
		if keyed {
			n.texts = make([]uint32, len(n.slots))
		}
		if n.fill(t) {
			*t = n
			return
		}
		size += size/8 + 1
	}
}

func (t *table) fill(from *table) bool {
	next := 0
	for i := range from.slots {
		if from.slots[i].hash == 0 {
			continue
		}
		to := max(next, t.home(from.slots[i].hash))
		if to >= len(t.slots)-1 {
			return false
		}
		next = to + 1
		t.slots[to] = from.slots[i]
		if t.texts != nil {
			t.texts[to] = from.texts[i]
		}
	}
	return true
}

// grown is the next size up.
func (t *table) grown() uint64 { return max(minSize, t.size+t.size/2) }

// shrink gives memory back when little of it is used. It leaves room to grow by a third.
func (t *table) shrink(keyed bool) {
	switch {
	case t.used == 0 && t.size > 0:
		*t = table{slots: noSlots[:]}
	case t.size > 4*minSize && uint64(t.used) < t.size*3/10:
		t.resize(max(minSize, uint64(t.used)*10/6), keyed)
	}
}

func (t *table) bytes() int64 {
	if t.size == 0 {
		return 0
	}
	return int64(len(t.slots))*slotBytes + int64(len(t.texts))*4
}
