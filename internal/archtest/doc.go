// Package archtest keeps the design true. It holds tests only: which package may import
// which, who may read a clock, what the core and the light packages may depend on, the
// size of files and functions, and that the documents agree with the code.
//
// Each rule says why it exists when it fails. An exception is listed beside its rule with
// a reason, and has to be deleted once nothing needs it; a rule that finds nothing to
// look at fails too.
package archtest
