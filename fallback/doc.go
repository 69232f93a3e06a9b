// Package fallback answers for a store that cannot, by each limit's OnFailure.
//
// Under LocalShare an instance enforces its share of the limit by itself: count and burst
// divided by the number of instances, rounded down, kept in a store of its own. All
// instances together then admit at most the limit while the store is away. Where the
// number is not known, or the share is nothing, the limit denies.
//
// An outcome that is not known counts as spent: the answer in its place gives nothing
// back.
package fallback
