package child

import "syscall"

// OwnGroup starts a process in a group of its own that ends with this process.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
