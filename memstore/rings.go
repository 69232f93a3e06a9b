package memstore

// rings holds the rings of rolling windows in chunks without pointers. A reference is the
// number of a chunk above 8 bits of place. A chunk is given back when its last ring is
// freed; a ring is zero when it is handed out.
type rings struct {
	chunks []chunk
	spare  []uint32 // numbers of chunks without memory
	open   []uint32 // chunks with a free ring
}

type chunk struct {
	words []uint32
	size  int // words in a ring
	live  int
	fresh int   // rings from here on were never used
	free  int32 // place of a freed ring plus 1, whose first word continues the list
}

const (
	maxPlaces  = 256
	chunkWords = 16384 // 64 KiB
	minPlaces  = 4
)

func (c *chunk) places() int { return len(c.words) / c.size }

func (c *chunk) full() bool { return c.live == c.places() }

// at is the ring of a reference.
func (r *rings) at(ref uint32) []uint32 {
	c := &r.chunks[ref>>8]
	from := int(ref&0xff) * c.size
	return c.words[from : from+c.size : from+c.size]
}

// take hands out a ring of zeros.
func (r *rings) take(size int) (ref uint32) {
	k := r.roomy(size)
	c := &r.chunks[k]
	place := c.fresh
	if c.free > 0 {
		place = int(c.free - 1)
		c.free = int32(c.words[place*c.size])
	} else {
		c.fresh++
	}
	c.live++
	if c.full() {
		r.close(k)
	}
	ref = k<<8 | uint32(place)
	clear(r.at(ref))
	return ref
}

// roomy is a chunk with a free ring of the size.
func (r *rings) roomy(size int) uint32 {
	for _, k := range r.open {
		if r.chunks[k].size == size {
			return k
		}
	}
	live := 0
	for i := range r.chunks {
		if r.chunks[i].size == size {
			live += r.chunks[i].live
		}
	}
	places := min(max(minPlaces, live/2), max(minPlaces, chunkWords/size), maxPlaces)
	c := chunk{words: make([]uint32, places*size), size: size}
	k := uint32(len(r.chunks))
	if n := len(r.spare); n > 0 {
		k = r.spare[n-1]
		r.spare = r.spare[:n-1]
		r.chunks[k] = c
	} else {
		r.chunks = append(r.chunks, c)
	}
	r.open = append(r.open, k)
	return k
}

// give takes a ring back.
func (r *rings) give(ref uint32) {
	k := ref >> 8
	c := &r.chunks[k]
	if c.full() {
		r.open = append(r.open, k)
	}
	place := int(ref & 0xff)
	c.words[place*c.size] = uint32(c.free)
	c.free = int32(place) + 1
	c.live--
	if c.live == 0 {
		r.close(k)
		r.chunks[k] = chunk{size: 1}
		r.spare = append(r.spare, k)
	}
	if len(r.spare) == len(r.chunks) {
		*r = rings{}
	}
}

func (r *rings) close(k uint32) {
	for i, o := range r.open {
		if o == k {
			last := len(r.open) - 1
			r.open[i] = r.open[last]
			r.open = r.open[:last]
			return
		}
	}
}

func (r *rings) bytes() int64 {
	n := int64(cap(r.chunks))*56 + int64(cap(r.spare)+cap(r.open))*4
	for i := range r.chunks {
		n += int64(len(r.chunks[i].words)) * 4
	}
	return n
}
