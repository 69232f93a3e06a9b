package redisserver

import "syscall"

// ownGroup starts a process in a group of its own that ends with this process.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
