package memstore

import "github.com/escapement-io/escapement/algo"

// A record is an algo.State and the number of the plan that wrote it, in three words: each
// holds 53 bits of the state above 11 bits of the number. A rolling window's second counter
// needs 7 bits; the reference to its ring stands below it.

const (
	tagBits = 11
	tagMask = 1<<tagBits - 1
	refBits = 32
)

// tag is the number of the plan that wrote the record.
func (s *slot) tag() uint32 {
	return uint32(s.w[0]&tagMask | s.w[1]&tagMask<<tagBits | s.w[2]&tagMask<<(2*tagBits))
}

// state is the record without its ring.
func (s *slot) state() algo.State {
	return algo.State{At: algo.Store(s.w[0] >> tagBits), A: int64(s.w[1] >> tagBits), B: int64(s.w[2] >> tagBits)}
}

// put writes a record that has no ring.
func (s *slot) put(st *algo.State, tag uint32) {
	t := uint64(tag)
	s.w[0] = uint64(st.At)<<tagBits | t&tagMask
	s.w[1] = uint64(st.A)<<tagBits | t>>tagBits&tagMask
	s.w[2] = uint64(st.B)<<tagBits | t>>(2*tagBits)
}

// ref is the reference to the record's ring.
func (s *slot) ref() uint32 { return uint32(s.w[2] >> tagBits) }

// rolling is the record of a rolling window with its ring.
func (s *slot) rolling(r *rings) algo.State {
	st := s.state()
	st.Ring = r.at(uint32(st.B))
	st.B >>= refBits
	return st
}

// putRolling writes the record of a rolling window.
func (s *slot) putRolling(st *algo.State, tag, ref uint32) {
	packed := algo.State{At: st.At, A: st.A, B: st.B<<refBits | int64(ref)}
	s.put(&packed, tag)
}
