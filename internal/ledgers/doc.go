// Package ledgers keeps the ledgers of many keys: it finds the one of a key, lets requests
// wait at it, and syncs all that are due together. What a ledger is, package lease and
// package batch say; both are driven the same way.
//
// A Store answers the claims of plans that are its own from their ledgers and hands all
// others to the store behind it. One goroutine, the clerk, collects what is due into calls
// of at most CallKeys keys; a silent key costs nothing and is dropped.
package ledgers
