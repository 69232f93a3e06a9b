//go:build unix

package child

import (
	"os"
	"syscall"
)

// The signals go to the whole group: under a tool the program is a child of what was
// started.

// Kill ends the group of a process at once.
func Kill(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// End asks the group of a process to end in order.
func End(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGTERM) }

// Halt makes the group of a process silent without ending it, until Resume.
func Halt(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGSTOP) }

// Resume ends a Halt.
func Resume(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGCONT) }
