//go:build amd64 || arm64

package memstore

import "unsafe"

// prefetch starts to load what p points to. Reading a clock waits for loads that were begun
// before, but not for this, so that the way to a slot or to a cold key and the reading
// overlap. On a million keys that is a quarter of a decision.
//
//go:noescape
func prefetch(p unsafe.Pointer)
