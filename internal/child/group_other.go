//go:build !unix

package child

import (
	"errors"
	"os"
	"syscall"
)

// OwnGroup is nothing here: there are no groups.
func OwnGroup() *syscall.SysProcAttr { return nil }

// Kill ends the process at once.
func Kill(p *os.Process) error { return p.Kill() }

// End ends the process: it cannot be asked to end in order here.
func End(p *os.Process) error { return p.Kill() }

// Halt is not possible here.
func Halt(*os.Process) error { return errors.ErrUnsupported }

// Resume is not possible here.
func Resume(*os.Process) error { return errors.ErrUnsupported }
