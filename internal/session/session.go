package session

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
)

// The errors that callers branch on; a Store may wrap them, so compare by
// errors.Is. An error that is none of them changes nothing either.
var (
	// ErrNotFound: there is no such session (or no more). The client may be told
	// so and starts anew.
	ErrNotFound = errors.New("session: not found")
	// ErrExists: Create found a session of that key.
	ErrExists = errors.New("session: exists already")
	// ErrUnavailable: the store cannot tell, because it is out of reach, closed or
	// did not answer before the context ended. It must never be shown to a client
	// as "not found": that would make it throw away a session which is alive.
	ErrUnavailable = errors.New("session: store is unavailable")
)

// Transport is how a client reaches its session.
type Transport string

// The client transports that have sessions. A session of one does not exist for
// requests of the other.
const (
	Streamable Transport = "streamable" // Streamable HTTP, 2025-03-26 to 2025-11-25
	LegacySSE  Transport = "sse"        // HTTP+SSE, 2024-11-05
)

// Key names a session. Ids are unique within a server, and two keys are the same
// only where both parts are: a Store must not join them so that they could meet.
type Key struct {
	Server string // name in the configuration
	ID     string
}

// Record is what a client session is, as data. It never holds a live object.
type Record struct {
	// Fixed at Create.
	ID        string // given to the client; see NewID
	Server    string
	Principal string // canonical key of whom the session belongs to; opaque here
	Transport Transport
	Revision  mcp.Revision // negotiated with the client
	Created   time.Time

	// Initialize is the client's initialize request, as it came.
	Initialize []byte

	// Home is the replica that holds what cannot move, "" where everything can.
	Home string

	// Used tells that the client has sent something after initialize through
	// another replica than the first.
	Used bool

	// Listener is the replica at which the session's own stream is open, "" if
	// there is none, or Home says it.
	Listener string

	// Upstream is the address that answered, UpstreamSession the server's own
	// session id, which no client may see, UpstreamRevision what was negotiated
	// with it. All empty for a server that is a process.
	Upstream         string
	UpstreamSession  string
	UpstreamRevision mcp.Revision

	Subscriptions []string // URIs of resources
	LogLevel      string   // as of logging/setLevel, "" if never set

	// LastSeen is as of the last Touch, not of the last request.
	LastSeen time.Time
	// Version is raised by each Update.
	Version uint64
}

// Key returns the key of r.
func (r Record) Key() Key {
	return Key{Server: r.Server, ID: r.ID}
}

// String returns "SERVER/HASH" with the ShortHash of the id, so that no format
// prints a whole one by accident.
func (k Key) String() string { return k.Server + "/" + ShortHash(k.ID) }

// LogValue implements slog.LogValuer, for handlers that do not use String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// String returns the key's: a record holds ids and bodies that belong in no log.
func (r Record) String() string { return r.Key().String() }

// LogValue implements slog.LogValuer.
func (r Record) LogValue() slog.Value { return r.Key().LogValue() }

// Clone returns a copy of r that shares no memory with it which could be
// written.
func (r Record) Clone() Record {
	r.Initialize = bytes.Clone(r.Initialize)
	r.Subscriptions = slices.Clone(r.Subscriptions)
	return r
}

// Store keeps the records of sessions.
//
// All methods may be called by any goroutine at any time; they may block for as
// long as ctx allows. Records are copied on their way in and out: neither side
// sees what the other does to a slice. All fields come back as they went in,
// bytes included, times to the millisecond at least; nil and empty slices are the
// same.
//
// A record expires when idle, the duration given to Create, has passed since
// Create or the last Touch, by the clock of the store. From then on it is not
// there, for no method; a store may be late by a second, never early.
//
// Every method gives ErrUnavailable where the store cannot tell. A call that
// gave ErrUnavailable may have been carried out all the same.
type Store interface {
	// Create adds r. ErrExists where r.Key() is taken: r is not stored, the other
	// record stays. idle is > 0.
	Create(ctx context.Context, r Record, idle time.Duration) error

	// Get returns the record of k. ErrNotFound.
	Get(ctx context.Context, k Key) (Record, error)

	// Update replaces the record of k by what change makes of it, as one step:
	// of Updates at the same time each sees the result of the one before, and a
	// Touch in between is kept unless change sets LastSeen itself. It returns the
	// new record, whose Version is higher; when the record expires stays as it
	// was. ErrNotFound: a session that ended is never revived, not even by an
	// Update that began before.
	//
	// change may be called more than once, each time with a fresh copy of the
	// newest record; it must be quick, have no other effect and not call the
	// Store. An error of change is returned (errors.Is), and nothing is stored;
	// the same where it changes the key. What it does to Version is ignored.
	Update(ctx context.Context, k Key, change func(*Record) error) (Record, error)

	// Touch sets LastSeen to seen and starts the idle time anew, from now on and
	// not from seen; Version stays. ErrNotFound.
	Touch(ctx context.Context, k Key, seen time.Time) error

	// Delete removes the record of k. ErrNotFound when it was not there: of two
	// Deletes at the same time one succeeds.
	Delete(ctx context.Context, k Key) error

	// Close frees what the Store holds; records of a shared store stay there.
	// After Close every other method gives ErrUnavailable, and Close does nothing.
	Close() error
}
