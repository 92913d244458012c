package main

import (
	"io"
	"syscall"
	"time"
	"unsafe"
)

// read reads into buf, which is not empty, and blocks the thread until there is something.
func read(fd int, buf []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
		switch {
		case errno == 0 && n == 0:
			return 0, io.EOF
		case errno == 0:
			return int(n), nil
		}
		if err := retry(errno, fd, false); err != nil {
			return 0, err
		}
	}
}

// write writes all of b and blocks the thread while the pipe is full.
func write(fd int, b []byte) error {
	for len(b) > 0 {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno == 0 {
			b = b[n:]
			continue
		}
		if err := retry(errno, fd, true); err != nil {
			return err
		}
	}
	return nil
}

// retry returns nil when the call may be made again, where whoever started this shares a file
// that does not block after having waited for it.
func retry(errno syscall.Errno, fd int, forWrite bool) error {
	switch errno {
	case syscall.EINTR:
		return nil
	case syscall.EAGAIN:
		_, err := wait(fd, forWrite, time.Hour)
		return err
	}
	return errno
}

// wait waits until fd can be read, or written, but not longer than most; ready is false when it
// may be too early.
func wait(fd int, forWrite bool, most time.Duration) (ready bool, err error) {
	var set syscall.FdSet
	set.Bits[0] = 1 << fd // 0 or 1
	timeout := syscall.NsecToTimeval(max(0, most.Nanoseconds()))
	var n int
	if forWrite {
		n, err = syscall.Select(fd+1, nil, &set, nil, &timeout)
	} else {
		n, err = syscall.Select(fd+1, &set, nil, nil, &timeout)
	}
	if err == syscall.EINTR {
		err = nil
	}
	return n > 0, err
}
