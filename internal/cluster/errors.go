package cluster

import (
	"errors"
	"fmt"
)

// What Forward and Alive give beside session.ErrUnavailable (the store cannot
// tell whether the home lives: 503). After all of them but ErrLost nothing has
// been sent to the home that it may have acted on, so the client may try again.
var (
	// ErrGone: the store answered, and the home's lease is over. The session is
	// lost: delete its record, answer 404.
	ErrGone = errors.New("the session's replica is gone")
	// ErrPeer: the home is registered but cannot be reached or is refused: 503,
	// until it can be or its lease is over.
	ErrPeer = errors.New("the session's replica cannot be reached")
	// ErrLoop: the request has been forwarded here, or this replica itself is the
	// home: replicas do not agree where the session is. 503.
	ErrLoop = errors.New("the request has been forwarded already")
	// ErrClient: the client left, or does not read: there is nobody to answer.
	ErrClient = errors.New("the client is gone")
	// ErrLost: the home took the request and the connection to it broke off, so
	// nobody knows what came of it. Always a *LostError.
	ErrLost = errors.New("the connection to the session's replica was lost")
)

// LostError is ErrLost with how far the answer had come.
type LostError struct {
	// Begun is whether status and headers have been written. If not, the caller
	// still owes the client an answer.
	Begun bool
	// Events is whether an event stream has begun and stands between two events:
	// the caller may end it with an event of its own. What has begun and is no
	// such stream is cut off (http.ErrAbortHandler), lest it looks complete.
	Events bool
	// Cause is what the connection says.
	Cause error
}

func (e *LostError) Error() string { return fmt.Sprintf("%v: %v", ErrLost, e.Cause) }

// Is makes a LostError an ErrLost for errors.Is.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Cause }
