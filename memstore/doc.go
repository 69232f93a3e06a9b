// Package memstore keeps limits in the memory of one process, dated by its monotonic
// clock: no step of any wall clock changes a verdict.
//
//	store := memstore.New()
//	defer store.Close()
//
// A Store holds any number of limits and keys in tables without pointers, 41 to 62 bytes a
// key of 16 bytes or any other length; a rolling window takes the words of its ring
// besides. It never forgets what still counts: only records as good as new are dropped, so
// a flood of new keys cannot free a limited one. At the cap (WithMaxKeys) an unknown key is
// answered with escapement.ErrFull, and the limit's OnFailure decides.
//
// Keys are told apart by a 64-bit hash whose seed is new in every process, all of it
// compared. That any two of a million live keys share a record has a probability of 2.7e-8,
// of a hundred million 2.7e-4; nobody outside the process can aim for it. Where that or
// the loss of the key's text is not acceptable, WithKeys keeps the keys themselves.
//
// One limiter without keys is cheaper as a Single.
package memstore
