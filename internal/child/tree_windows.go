package child

import (
	"log/slog"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tree is a process and what it started, held together by a job object. The job is
// killed when its last handle closes, which the system does when this process ends.
type tree struct {
	log *slog.Logger

	mu  sync.Mutex
	job windows.Handle // 0 if there is none
	pid int
}

// childAttr keeps a Ctrl-C in our console from reaching the child.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

func newTree(pid int, log *slog.Logger) *tree {
	t := &tree{log: log, pid: pid}
	job, err := newJob(pid)
	if err != nil {
		log.Warn("process has no job object; what it starts may outlive it", "err", err)
		return t
	}
	t.job = job
	return t
}

func newJob(pid int) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	if err := fillJob(job, pid); err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

func fillJob(job windows.Handle, pid int) error {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return err
	}
	const access = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE
	process, err := windows.OpenProcess(access, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.AssignProcessToJobObject(job, process)
}

func (t *tree) note() {}

func (t *tree) leaderExited() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pid = 0
}

// term does nothing: there is no signal that asks a process to end.
func (t *tree) term() {}

// kill ends the job, or the process alone if there is no job.
func (t *tree) kill() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	switch {
	case t.job != 0:
		err = windows.TerminateJobObject(t.job, 1)
	case t.pid != 0:
		err = terminate(t.pid)
	}
	if err != nil {
		t.log.Debug("cannot terminate process", "err", err)
	}
	return t.pid != 0 // what is in a terminated job is as good as gone
}

func terminate(pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.TerminateProcess(process, 1)
}

// alive ends what the exited leader left in the job: it cannot be asked to end.
func (t *tree) alive() bool { return t.kill() }

func (t *tree) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		_ = windows.CloseHandle(t.job)
		t.job = 0
	}
}

// awaitExit is not needed: an open handle keeps the pid from being used again.
func awaitExit(int) bool { return false }

func exitSignal(*os.ProcessState) (int, string) { return 0, "" }
