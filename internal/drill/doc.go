// Package drill does to a limiter what production does to it, on this machine, and judges
// what it admitted: ClockStep steps the wall clock of a process under load. Running and
// judging are apart: a Run is what was observed, Judge is pure.
package drill
