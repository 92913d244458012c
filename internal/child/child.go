package child

import (
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/buf"
)

// Errors that callers branch on.
var (
	// ErrBusy: the queue for the process's stdin is full; nothing was taken.
	ErrBusy = errors.New("child: the process does not keep up with its input")
	// ErrGone: the process has ended or is being stopped; nothing was taken.
	ErrGone = errors.New("child: the process is gone")
	// ErrTooMany: Options.MaxProcesses are running or stopping.
	ErrTooMany = errors.New("child: too many processes")

	errClosed = errors.New("supervisor is closed")
)

const (
	defaultMaxProcesses = 128
	defaultMaxLine      = 64 << 20
	defaultQueueBytes   = 64 << 20
	defaultStopGrace    = 2 * time.Second
	defaultTermGrace    = 3 * time.Second
)

// Spec says what to start. Name and Args are required.
type Spec struct {
	Name string   // server name, for errors and logs
	Args []string // argv; Args[0] without a separator is looked up in the PATH of Env
	Env  []string // the complete environment, as made by BaseEnv
	Dir  string   // working directory; empty: this process's

	Quota *Quota // shared by the Specs of one server; nil: only the Supervisor's bound

	MaxLine int // bytes of one stdout line without its end; 0 = 64 MiB
	// QueueBytes bounds what waits for stdin; each line counts 64 bytes more than
	// it has. 0 = 64 MiB and one line of MaxLine. A line above the bound is taken
	// when nothing else waits.
	QueueBytes int
	// Buffers gets the lines back that were written, and gives those that are
	// read: whoever is done with one may put it back. nil: none are reused.
	Buffers *buf.Pool

	StopGrace time.Duration // from closing stdin to SIGTERM; 0 = 2 s
	TermGrace time.Duration // from SIGTERM to SIGKILL; 0 = 3 s
}

func (s Spec) withDefaults() Spec {
	if s.MaxLine <= 0 {
		s.MaxLine = defaultMaxLine
	}
	if s.QueueBytes <= 0 {
		s.QueueBytes = defaultQueueBytes + s.MaxLine
	}
	if s.StopGrace <= 0 {
		s.StopGrace = defaultStopGrace
	}
	if s.TermGrace <= 0 {
		s.TermGrace = defaultTermGrace
	}
	return s
}

// Handler takes what a process says. Its methods are called from the reader
// goroutine, one at a time, the first possibly before Start returns. They must
// not block: while one runs, the process's output is not read. In particular
// they must not wait for Done.
type Handler interface {
	// Line takes one line without its LF and without one CR before it. It is never
	// empty or all white space. A byte order mark at the very start of the stream
	// is gone. Text that the stream ends without an LF is no line. The slice is
	// the handler's.
	Line(line []byte)
	// Oversize tells of a line longer than Spec.MaxLine, which was discarded: its
	// first and last 4 KiB (they overlap when it is shorter than both) and its
	// length. The slices are the handler's.
	Oversize(head, tail []byte, size int64)
	// Exit is called exactly once, after the last Line: when the process has exited
	// and its stdout has ended (or 2 s have passed because something else holds it
	// open), or when stdout ended and the process lives on; it is then stopped.
	Exit(ExitInfo)
}

// ExitInfo says how a process ended.
type ExitInfo struct {
	Code         int    // exit code; 128 + number for a signal
	Signal       string // name of the signal that killed it, like "SIGKILL"; else empty
	Err          error  // what made Signalbox stop it, or why the status is unknown; else nil
	StdoutClosed bool   // stdout ended and the process lived on
}

// String says it in words, to follow the name of the server.
func (e ExitInfo) String() string {
	var s string
	switch {
	case e.StdoutClosed:
		s = "closed its output"
	case e.Signal != "":
		s = fmt.Sprintf("killed by signal %d (%s)", e.Code-128, e.Signal)
	default:
		s = fmt.Sprintf("exited (code %d)", e.Code)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// StartError tells why a process could not be started.
type StartError struct {
	Server  string
	Command string // Spec.Args[0]
	Path    string // the PATH searched, if the command was not found in it
	Err     error  // exec.ErrNotFound when the command was not found
}

func (e *StartError) Error() string {
	cause := e.Err.Error()
	if e.Path != "" {
		cause = "executable not found in " + e.Path
	}
	return fmt.Sprintf("server %q: start %q: %s", e.Server, e.Command, cause)
}

func (e *StartError) Unwrap() error { return e.Err }
