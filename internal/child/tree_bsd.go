//go:build unix && !linux

package child

import "syscall"

// childAttr gives the child its own session, and with it its own group and no
// terminal.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

// awaitExit cannot wait here without reaping.
func awaitExit(int) bool { return false }

// family is not known beyond the group.
type family struct{}

func newFamily(int) family { return family{} }

func (t *tree) membersLocked() (pids []int, known bool) { return nil, false }
