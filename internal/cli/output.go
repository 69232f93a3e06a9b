package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// The rules of output, for every command:
//
//   - results go to standard output, everything else to standard error;
//   - with --json a result is one JSON document whose field names stand on the page of
//     the command in docs and do not change;
//   - an error is one line "escapement: what was tried: cause", what to do follows
//     indented;
//   - exit 0: fine; 1: a finding (a broken bound, a bad configuration); 2: wrong usage;
//     3: could not run.

// Output is where a command writes.
type Output struct {
	Out io.Writer // results
	Err io.Writer // everything else
}

// JSON writes v as one document.
func (o *Output) JSON(v any) error {
	e := json.NewEncoder(o.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Result writes a result of the command named, for people or as one JSON document.
func (o *Output) Result(command string, asJSON bool, r interface{ Text(io.Writer) error }) error {
	write := func() error { return r.Text(o.Out) }
	if asJSON {
		write = func() error { return o.JSON(r) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// Printf writes a result for people.
func (o *Output) Printf(format string, args ...any) { fmt.Fprintf(o.Out, format, args...) }

// Logf writes a line that is not a result.
func (o *Output) Logf(format string, args ...any) { fmt.Fprintf(o.Err, format+"\n", args...) }

// Terminal reports whether standard error is a terminal, so that a progress line can be
// drawn and redrawn there.
func (o *Output) Terminal() bool {
	f, ok := o.Err.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// Exit codes.
const (
	ExitFine    = 0
	ExitFinding = 1
	ExitUsage   = 2
	ExitFailed  = 3
)

// exitError carries the code a command ends with. A nil err says nothing more: the
// result already said it.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// found ends a command that printed its findings.
func found() error { return &exitError{code: ExitFinding} }

// usage is the error of a command that was called wrongly.
func usage(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// code is what an error means for the exit status; without one a command could not run.
func code(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return ExitFine
	case errors.As(err, &e):
		return e.code
	}
	return ExitFailed
}
