package memstore

// Stats is what a store holds and has done since it was made.
type Stats struct {
	Keys    int64  // records now
	MaxKeys int64  // the cap
	Bytes   int64  // memory of the tables, the rings and the text of keys
	Refused uint64 // claims that met the cap
	Dropped uint64 // records dropped because they were as good as new
	Adopted uint64 // records brought under a newer plan
}

// Stats adds up what the shards hold; each is locked for a moment.
func (s *Store) Stats() Stats {
	t := Stats{Keys: s.keys.Load(), MaxKeys: s.max}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		t.Bytes += sh.table.bytes() + sh.rings.bytes() + int64(cap(sh.text.data))
		t.Refused += sh.full
		t.Dropped += sh.dropped
		t.Adopted += sh.adopted
		sh.mu.Unlock()
	}
	return t
}
