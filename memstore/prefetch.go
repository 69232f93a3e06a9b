//go:build amd64 || arm64

package memstore

// prefetch starts to load a slot. The clock waits for loads that were begun before it is
// read, but not for this: what it costs to reach a slot and to read the clock overlap.
//
//go:noescape
func prefetch(s *slot)
