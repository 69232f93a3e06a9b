//go:build unix

package hook

import (
	"os/exec"
	"syscall"
)

// killWholeGroup has a cancelled program die with the processes that it started.
func killWholeGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
