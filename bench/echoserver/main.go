// Command echoserver is a stdio MCP server at pipe speed: one goroutine in a loop of blocking
// reads and writes, no JSON decoding, and one write for the answers to all that one read gave.
//
//	main → serve → line → fill → wait, read
//	             → answer → flush → write
//
// It calls the system without telling the Go runtime, which takes it for busy. Told of the call,
// as by os.File, the runtime finds all its processors idle after each message and wakes its
// monitor at the next one: sixteen such servers used three times the processor time for a call.
// The goroutine is not locked to its thread, as there is no other one to keep out; a lock would
// only make each time slice end in a switch of threads.
//
// It is of the handshake era, with -per-request of that era only: one process of a stdio server
// has one era.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/echo"
)

// flushAt bounds how much is held back while there are more lines to answer.
const flushAt = 256 << 10

func main() {
	perRequest := flag.Bool("per-request", false, "speak MCP 2026-07-28")
	flag.Parse()
	// A collection would wait for this thread, which does not hear of it in a read. What the
	// loop leaves behind are the buffers that it outgrew.
	debug.SetGCPercent(-1)
	s := &server{in: 0, out: 1, buf: make([]byte, 256<<10), pending: make([]byte, 0, 2*flushAt), reply: echo.Call.Answer}
	if *perRequest {
		s.reply = echo.Call.AnswerPerRequest
	}
	if err := s.serve(); err != nil {
		fmt.Fprintln(os.Stderr, "echoserver:", err)
		os.Exit(1)
	}
}

// server is owned by the one goroutine that there is.
type server struct {
	in, out int // file descriptors
	reply   func(call echo.Call, dst []byte) []byte

	buf        []byte // what was read and not yet answered is buf[start:end]
	start, end int

	pending []byte    // answers not yet written
	delayed []delayed // by when they are due; Delay is the same for all
}

// delayed is a request whose answer is held back.
type delayed struct {
	due  time.Time
	line []byte
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
			s.delayed = append(s.delayed, delayed{time.Now().Add(d), bytes.Clone(line)})
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
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
}

// fill writes what is pending or falls due, and reads more.
func (s *server) fill() error {
	if err := s.flush(); err != nil {
		return err
	}
	s.makeRoom()
	for len(s.delayed) > 0 {
		ready, err := wait(s.in, false, time.Until(s.delayed[0].due))
		if err != nil {
			return err
		}
		if ready {
			break
		}
		if err := s.answerDue(); err != nil {
			return err
		}
	}
	n, err := read(s.in, s.buf[s.end:])
	s.end += n
	return err
}

// makeRoom moves the unfinished line to the front and doubles the buffer when that fills it.
func (s *server) makeRoom() {
	s.end = copy(s.buf, s.buf[s.start:s.end])
	s.start = 0
	if s.end == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
}

// answerDue answers the first of the delayed requests, if its time has come.
func (s *server) answerDue() error {
	first := s.delayed[0]
	if time.Now().Before(first.due) {
		return nil
	}
	s.delayed = s.delayed[1:]
	if err := s.answer(echo.Parse(first.line)); err != nil {
		return err
	}
	return s.flush()
}

func (s *server) answer(call echo.Call) error {
	for step := range call.Steps() {
		s.pending = append(call.Step(s.pending, step+1), '\n')
	}
	before := len(s.pending)
	s.pending = s.reply(call, s.pending)
	if len(s.pending) > before {
		s.pending = append(s.pending, '\n')
	}
	if len(s.pending) < flushAt {
		return nil
	}
	return s.flush()
}

func (s *server) flush() error {
	err := write(s.out, s.pending)
	s.pending = s.pending[:0]
	return err
}
