package redistest

import "syscall"

// sysProcAttr: the server ends with the test's process, however that ends.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
