package memstore

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// source is a random source whose seed is logged.
func source(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// verify checks that the table holds exactly want, in order, every hash where a search
// finds it.
func verify(t *testing.T, tab *table, want map[uint64]uint64) {
	t.Helper()
	seen, last := 0, uint64(0)
	for i := range tab.slots {
		h := tab.slots[i].hash
		if h == 0 {
			continue
		}
		if h <= last {
			t.Fatalf("slot %d: hash %x after %x", i, h, last)
		}
		last = h
		seen++
	}
	if seen != len(want) || tab.used != len(want) {
		t.Fatalf("%d slots in use, %d counted, want %d", seen, tab.used, len(want))
	}
	for h, v := range want {
		i, ok := tab.find(h)
		if !ok || tab.slots[i].w[0] != v || tab.texts != nil && tab.texts[i] != uint32(v) {
			t.Fatalf("hash %x: found %v at %d", h, ok, i)
		}
	}
	if tab.size > 0 && tab.slots[len(tab.slots)-1].hash != 0 {
		t.Fatal("the last slot is in use")
	}
}

func TestTable(t *testing.T) {
	r := source(t)
	for _, keyed := range []bool{false, true} {
		// Few distinct high bits make clusters, up to the end of the table.
		for _, mask := range []uint64{1<<64 - 1, 1<<64 - 1<<58 | 0xff, 0xf<<60 | 0xfff} {
			tab := table{slots: noSlots[:]}
			want := map[uint64]uint64{}
			for step := range 4000 {
				h := r.Uint64()&mask | 1
				if r.IntN(4) == 0 {
					h |= 0xf << 60 &^ (mask >> 1)
				}
				i, ok := tab.find(h)
				if _, known := want[h]; known != ok {
					t.Fatalf("step %d: hash %x found %v, want %v", step, h, ok, known)
				}
				switch {
				case ok:
					tab.remove(i)
					delete(want, h)
				case tab.crowded() || !tab.insert(i, h):
					tab.resize(tab.grown(), keyed)
				default:
					v := uint64(r.Uint32())
					tab.slots[i].w[0] = v
					if keyed {
						tab.texts[i] = uint32(v)
					}
					want[h] = v
				}
				if step%500 == 499 {
					odd := uint64(r.IntN(2))
					tab.filter(func(i int) bool { return tab.slots[i].w[0]&1 == odd })
					for h, v := range want {
						if v&1 != odd {
							delete(want, h)
						}
					}
					tab.shrink(keyed)
				}
				if step%50 == 0 {
					verify(t, &tab, want)
				}
			}
			tab.filter(func(int) bool { return false })
			tab.shrink(keyed)
			verify(t, &tab, nil)
			if tab.size != 0 {
				t.Errorf("an empty table keeps %d homes", tab.size)
			}
		}
	}
}

func TestTableBytes(t *testing.T) {
	r := source(t)
	tab := table{slots: noSlots[:]}
	for n := 1; n <= 20_000; n++ {
		h := r.Uint64() | 1
		if tab.crowded() {
			tab.resize(tab.grown(), false)
		}
		i, _ := tab.find(h)
		for !tab.insert(i, h) {
			tab.resize(tab.grown(), false)
			i, _ = tab.find(h)
		}
		if per := tab.bytes() / int64(n); n > 1000 && per > 62 {
			t.Fatalf("%d records take %d bytes each", n, per)
		}
	}
}

func TestRecordHoldsEveryState(t *testing.T) {
	r := source(t)
	word := func() int64 {
		return []int64{0, 1, algo.MaxInt, r.Int64N(algo.MaxInt)}[r.IntN(4)]
	}
	for range 1000 {
		st := algo.State{At: algo.Store(word()), A: word(), B: word()}
		tag := []uint32{0, 1, 1<<32 - 1, r.Uint32()}[r.IntN(4)]
		var s slot
		s.put(&st, tag)
		if got := s.state(); got.At != st.At || got.A != st.A || got.B != st.B || s.tag() != tag {
			t.Fatalf("put %+v of plan %d, got %+v of plan %d", st, tag, got, s.tag())
		}
		ref := r.Uint32()
		log := algo.State{At: st.At, A: st.A, B: r.Int64N(algo.LogMax)}
		s.putRolling(&log, tag, ref)
		if got := s.state(); s.ref() != ref || s.tag() != tag || got.At != log.At || got.A != log.A || got.B>>refBits != log.B {
			t.Fatalf("put %+v with ring %d, got %+v with ring %d", log, ref, got, s.ref())
		}
	}
}

func TestRings(t *testing.T) {
	r := source(t)
	var rs rings
	held := map[uint32]int{} // reference to size; filled with the reference
	for step := range 20_000 {
		grow := step/2000%2 == 0
		if len(held) == 0 || grow == (r.IntN(4) > 0) {
			size := []int{2, 17, 129, 1025}[r.IntN(4)]
			ref := rs.take(size)
			ring := rs.at(ref)
			if len(ring) != size || slices.Max(ring) != 0 {
				t.Fatalf("step %d: a ring of %d words, greatest %d; want %d zeros", step, len(ring), slices.Max(ring), size)
			}
			if _, twice := held[ref]; twice {
				t.Fatalf("step %d: ring %d handed out twice", step, ref)
			}
			for i := range ring {
				ring[i] = ref + 1
			}
			held[ref] = size
			continue
		}
		for ref, size := range held {
			ring := rs.at(ref)
			if len(ring) != size || slices.Min(ring) != ref+1 || slices.Max(ring) != ref+1 {
				t.Fatalf("step %d: ring %d was overwritten", step, ref)
			}
			rs.give(ref)
			delete(held, ref)
			break
		}
	}
	for ref := range held {
		rs.give(ref)
	}
	if n := rs.bytes(); n != 0 {
		t.Errorf("%d bytes kept without a ring", n)
	}
}

func TestText(t *testing.T) {
	var x text
	tab := table{slots: noSlots[:]}
	tab.resize(64, true)
	long := strings.Repeat("k", 10_000)
	keys := []string{"", "a", "\xff\x00", strings.Repeat("b", escapement.MaxKey), long}
	for n, k := range keys {
		h := uint64(n+1) << 56
		i, _ := tab.find(h)
		tab.insert(i, h)
		tab.texts[i] = x.add(k)
	}
	check := func() {
		t.Helper()
		for n, k := range keys {
			i, ok := tab.find(uint64(n+1) << 56)
			if !ok {
				continue
			}
			if !x.is(tab.texts[i], k) || x.is(tab.texts[i], k+"x") {
				t.Errorf("key %d is not told from others", n)
			}
		}
	}
	check()
	if x.is(tab.texts[0], "b") {
		t.Error("the empty key is not told from b")
	}
	size := len(x.data)
	i, _ := tab.find(5 << 56)
	x.drop(tab.texts[i])
	tab.remove(i)
	i, _ = tab.find(2 << 56)
	x.drop(tab.texts[i])
	tab.remove(i)
	x.compact(&tab)
	if len(x.data) >= size-escapement.MaxKey || x.dead != 0 || bytes.Contains(x.data, []byte("kk")) {
		t.Errorf("%d bytes of %d kept, %d dead", len(x.data), size, x.dead)
	}
	check()
}
