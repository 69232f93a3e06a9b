//go:build unix && !linux

package child

import "syscall"

// OwnGroup starts a process in a group of its own. Only Linux ends it with this process.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
