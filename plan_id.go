package escapement

import "sync/atomic"

// lastID numbers plans within this process. The number is never stored or sent.
var lastID atomic.Uint32

func nextID() uint32 { return lastID.Add(1) }
