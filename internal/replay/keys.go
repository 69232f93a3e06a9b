package replay

// keys numbers the keys of one kind, in the order in which they are first seen.
type keys struct {
	index map[string]uint32
	names []string
	last  uint32 // traffic comes in runs: the key asked for last
}

func newKeys() *keys { return &keys{index: map[string]uint32{}} }

// maxKeys bounds the numbers; at the bound a trace would need a terabyte of state.
const maxKeys = 1<<32 - 1

// number allocates only for a key that is new.
func (k *keys) number(key []byte) (n uint32, isNew bool) {
	if int(k.last) < len(k.names) && k.names[k.last] == string(key) {
		return k.last, false
	}
	n, ok := k.index[string(key)]
	if !ok {
		if uint64(len(k.names)) >= maxKeys {
			return 0, false
		}
		n = uint32(len(k.names))
		name := string(key)
		k.names = append(k.names, name)
		k.index[name] = n
	}
	k.last = n
	return n, !ok
}

// record is what is known of one key under one limit: two states, the one under the limit
// and the one that admitting everything would have led to.
type record struct {
	at, a, b       int64
	wantAt, wA, wB int64
	admitted       int64 // requests
	refused        int64
}

const pageSize = 1 << 10

// records grow by pages, so that growing moves nothing.
type records struct {
	pages [][]record
	rings [][]uint32 // a page of rings per page of records, of slots words each
	slots int
}

func (r *records) grow(n int) {
	for len(r.pages)*pageSize < n {
		r.pages = append(r.pages, make([]record, pageSize))
		if r.slots > 0 {
			r.rings = append(r.rings, make([]uint32, pageSize*r.slots))
		}
	}
}

func (r *records) at(n uint32) *record { return &r.pages[n/pageSize][n%pageSize] }

// ring is the part-th of the words that belong to record n, of slots/parts each.
func (r *records) ring(n uint32, part, parts int) []uint32 {
	if r.slots == 0 {
		return nil
	}
	size := r.slots / parts
	from := int(n%pageSize)*r.slots + part*size
	return r.rings[n/pageSize][from : from+size]
}
