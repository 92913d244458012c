package child

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pipeBytes is the room wanted in a pipe, so that a burst costs few switches.
const pipeBytes = 1 << 20

// writeLine writes a line and its LF without copying the line and without waking
// the process twice for it.
func writeLine(f *os.File, line []byte) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	rest := [][]byte{line, {'\n'}}
	var failed error
	err = conn.Write(func(fd uintptr) bool {
		for len(rest) > 0 {
			n, err := unix.Writev(int(fd), rest)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case errors.Is(err, unix.EAGAIN):
				return false
			case err != nil:
				failed = err
				return true
			case n == 0:
				failed = io.ErrUnexpectedEOF
				return true
			}
			rest = skip(rest, n)
		}
		return true
	})
	return errors.Join(err, failed)
}

func skip(bufs [][]byte, n int) [][]byte {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs = bufs[1:]
	}
	if n > 0 {
		bufs[0] = bufs[0][n:]
	}
	return bufs
}

// widen makes a pipe larger if the system lets it.
func widen(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes)
	})
}
