package ledgers

import "testing"

// TestTellNeverBlocks: a request that was told already, and waits for the lock that the
// teller holds, is told again.
func TestTellNeverBlocks(t *testing.T) {
	w := waiter{again: make(chan struct{}, 1)}
	w.tell()
	w.tell()
	if len(w.again) != 1 {
		t.Error("it was not told")
	}
}
