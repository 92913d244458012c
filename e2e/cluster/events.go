package cluster

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"time"
)

// Event is one event of a stream, also one that has nothing but a retry hint.
type Event struct{ ID, Data, Retry string }

// Events are those of a stream, read in the background.
type Events struct {
	ch    chan Event // closed at the end, after err is set
	err   error      // nil for an orderly end
	close func()
}

// ErrNoEvent is returned where nothing came in time.
var ErrNoEvent = errors.New("no event came")

func newEventsReader(body io.ReadCloser, cancel func()) *Events {
	e := &Events{ch: make(chan Event, 1000), close: cancel}
	go func() {
		defer close(e.ch)
		defer body.Close()
		in := bufio.NewReader(body)
		var next Event
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				if err != io.EOF {
					e.err = err
				}
				return
			}
			line = strings.TrimRight(line, "\r\n")
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case line == "" && next != Event{}:
				e.ch <- next
				next = Event{}
			case name == "id":
				next.ID = value
			case name == "data":
				next.Data += value
			case name == "retry":
				next.Retry = value
			}
		}
	}()
	return e
}

// Next waits for an event; io.EOF at an orderly end.
func (e *Events) Next(limit time.Duration) (Event, error) {
	select {
	case next, ok := <-e.ch:
		switch {
		case ok:
			return next, nil
		case e.err != nil:
			return Event{}, e.err
		}
		return Event{}, io.EOF
	case <-time.After(limit):
		return Event{}, ErrNoEvent
	}
}

// Find reads on until an event has text in its data, and returns it.
func (e *Events) Find(text string, limit time.Duration) (Event, error) {
	deadline := time.Now().Add(limit)
	for {
		next, err := e.Next(time.Until(deadline))
		if err != nil || strings.Contains(next.Data, text) {
			return next, err
		}
	}
}

// Close gives the stream up.
func (e *Events) Close() { e.close() }
