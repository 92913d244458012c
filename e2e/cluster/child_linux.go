package cluster

import (
	"os/exec"
	"syscall"
)

// diesWithTest ends a process with the test's, however that ends.
func diesWithTest(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
