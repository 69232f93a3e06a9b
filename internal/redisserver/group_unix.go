//go:build unix

package redisserver

import (
	"os"
	"syscall"
)

// The signals go to the whole group: under a tool the server is a child of what was
// started.

func kill(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

func halt(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGSTOP) }

func resume(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGCONT) }
