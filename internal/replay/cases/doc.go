// Package cases reads files of rate limit cases and runs them: what was asked, at which
// true time, on which faulty clocks, and what a limiter must answer. The format is
// documented in docs/reference/cases.md.
package cases
