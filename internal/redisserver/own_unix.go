//go:build unix && !linux

package redisserver

import "syscall"

// ownGroup starts a process in a group of its own. It ends by Stop alone: only Linux ends
// it with this process.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
