package memstore

import (
	"encoding/binary"

	"github.com/escapement-io/escapement"
)

// text holds the keys of a shard one behind the other, each after its length. Of a key
// longer than escapement.MaxKey it holds the beginning.
type text struct {
	data []byte
	dead int // bytes of keys that are gone
}

func (t *text) add(key string) (at uint32) {
	at = uint32(len(t.data))
	t.data = binary.AppendUvarint(t.data, uint64(len(key)))
	t.data = append(t.data, key[:min(len(key), escapement.MaxKey)]...)
	return at
}

// entry is the length of the key that stands at a place, what is kept of it, and the
// number of bytes both take.
func (t *text) entry(at uint32) (length int, kept []byte, size int) {
	n, head := binary.Uvarint(t.data[at:])
	size = head + int(min(n, escapement.MaxKey))
	return int(n), t.data[int(at)+head : int(at)+size], size
}

func (t *text) is(at uint32, key string) bool {
	n, kept, _ := t.entry(at)
	return n == len(key) && string(kept) == key[:len(kept)]
}

func (t *text) drop(at uint32) {
	_, _, size := t.entry(at)
	t.dead += size
}

// compact rewrites the keys still in use when a quarter of the bytes are dead.
func (t *text) compact(tab *table) {
	if t.dead <= len(t.data)/4 {
		return
	}
	old := *t
	*t = text{}
	if tab.used == 0 {
		return
	}
	t.data = make([]byte, 0, len(old.data)-old.dead)
	for i := range tab.slots {
		if tab.slots[i].hash != 0 {
			_, _, size := old.entry(tab.texts[i])
			from := tab.texts[i]
			tab.texts[i] = uint32(len(t.data))
			t.data = append(t.data, old.data[from:int(from)+size]...)
		}
	}
}
