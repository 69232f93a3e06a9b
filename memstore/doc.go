// Package memstore keeps limits in the memory of one process, dated by its monotonic
// clock: no step of any wall clock changes a verdict.
//
//	store := memstore.New()
//	defer store.Close()
//
// A Store holds any number of limits and keys in tables without pointers: 40 to 62 bytes a
// key, however long, and for a rolling window its ring besides. The names of limits it
// remembers for good. It never forgets what still counts: only records as good as new are dropped, so
// a flood of new keys cannot free a limited one. At the cap (WithMaxKeys) an unknown key is
// answered with escapement.ErrFull, and the limit's OnFailure decides.
//
// Keys are told apart by a 64-bit hash whose seed is new in every process, all of it
// compared. That any two of a million live keys share a record has a probability of 2.7e-8,
// of a hundred million 2.7e-4; nobody outside the process can aim for it. Where that or
// the loss of the key's text is not acceptable, WithKeys keeps the keys themselves.
//
// A limit that comes back under its name with another definition takes over what was used;
// Store.Adopt says when. One limiter without keys is cheaper as a Single, and a Coarse clock
// is cheaper than the precise one, at a price.
package memstore
