// Command echoserver is a stdio MCP server at pipe speed: one goroutine, no JSON decoding, and
// its answers are written when no complete line is left to read.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/echo"
)

// flushAt bounds how much is held back while there is more to read.
const flushAt = 128 << 10

func main() {
	s := &server{in: os.Stdin, out: os.Stdout, buf: make([]byte, 256<<10)}
	if err := s.serve(); err != nil {
		fmt.Fprintln(os.Stderr, "echoserver:", err)
		os.Exit(1)
	}
}

type server struct {
	in  io.Reader
	out io.Writer

	// Owned by serve: what was read and not yet answered is buf[start:end].
	buf        []byte
	start, end int

	mu      sync.Mutex
	pending []byte // answers not yet written
}

func (s *server) serve() error {
	for {
		line, err := s.line()
		if err == io.EOF {
			return s.flush()
		}
		if err != nil {
			return err
		}
		call := echo.Parse(line)
		if d := call.Delay(); d > 0 {
			s.later(d, bytes.Clone(line))
			continue
		}
		if err := s.answer(call); err != nil {
			return err
		}
	}
}

// line returns the next line without its end; it is good until the next call.
func (s *server) line() ([]byte, error) {
	for scanned := s.start; ; {
		if n := bytes.IndexByte(s.buf[scanned:s.end], '\n'); n >= 0 {
			line := s.buf[s.start : scanned+n]
			s.start = scanned + n + 1
			return line, nil
		}
		scanned = s.end - s.start
		if err := s.flush(); err != nil {
			return nil, err
		}
		s.makeRoom()
		n, err := s.in.Read(s.buf[s.end:])
		if n == 0 && err != nil {
			return nil, err
		}
		s.end += n
	}
}

// makeRoom moves the unfinished line to the front and doubles the buffer when that fills it.
func (s *server) makeRoom() {
	s.end = copy(s.buf, s.buf[s.start:s.end])
	s.start = 0
	if s.end == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
}

func (s *server) answer(call echo.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.pending)
	s.pending = call.Answer(s.pending)
	if len(s.pending) > before {
		s.pending = append(s.pending, '\n')
	}
	if len(s.pending) < flushAt {
		return nil
	}
	return s.flushLocked()
}

// later answers after d; the server may end before that.
func (s *server) later(d time.Duration, line []byte) {
	time.AfterFunc(d, func() {
		if s.answer(echo.Parse(line)) == nil {
			_ = s.flush() // a broken pipe shows in serve as well
		}
	})
}

func (s *server) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushLocked()
}

func (s *server) flushLocked() error {
	if len(s.pending) == 0 {
		return nil
	}
	_, err := s.out.Write(s.pending)
	s.pending = s.pending[:0]
	return err
}
