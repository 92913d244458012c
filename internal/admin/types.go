package admin

import "time"

// ServerList answers GET /api/v1/servers.
type ServerList struct {
	Servers []Server `json:"servers"`
}

// Server is the state of one server.
type Server struct {
	Name      string    `json:"name"`
	Kind      string    `json:"kind"` // "stdio" or "http"
	Isolation string    `json:"isolation,omitempty"`
	Era       string    `json:"era,omitempty"` // "handshake", "per-request", "both", or not known yet
	State     string    `json:"state"`         // "unused", "working", or "failing": its last session did not start, or was lost
	Sessions  int       `json:"sessions"`      // now, in this process
	Started   int       `json:"started"`       // sessions that it accepted
	WorkedAt  time.Time `json:"worked_at,omitzero"`
	FailedAt  time.Time `json:"failed_at,omitzero"`
	Failure   string    `json:"failure,omitempty"` // the last one
	Addresses []Address `json:"addresses,omitempty"`
}

// Address is one of an HTTP server's.
type Address struct {
	Address  string `json:"address"` // scheme://ip:port
	Down     bool   `json:"down"`
	Sessions int    `json:"sessions"`
}

// SessionList answers GET /api/v1/sessions: the sessions of this process, oldest
// first.
type SessionList struct {
	Sessions []Session `json:"sessions"`
}

// Session is one session of a client.
type Session struct {
	Session       string    `json:"session"`             // eight hex digits of the SHA-256 of its id, as in logs
	Server        string    `json:"server"`              // name
	Principal     string    `json:"principal,omitempty"` // as in logs; none where this process has not heard of it
	Transport     string    `json:"transport"`           // "streamable" or "sse"
	Era           string    `json:"era"`                 // "handshake"
	Revision      string    `json:"revision,omitempty"`  // negotiated; none until then
	State         string    `json:"state"`               // "opening", until the server has accepted, or "open"
	Client        string    `json:"client,omitempty"`    // as it calls itself
	ClientVersion string    `json:"client_version,omitempty"`
	Created       time.Time `json:"created"` // here
	AgeSeconds    float64   `json:"age_seconds"`
	LastSeen      time.Time `json:"last_seen"`
	IdleSeconds   float64   `json:"idle_seconds"` // since then
	Calls         int       `json:"calls_in_flight"`
	Streams       int       `json:"streams"`
}

// SessionDetail answers GET /api/v1/sessions/HASH.
type SessionDetail struct {
	Session  Session   `json:"session"`
	Messages []Message `json:"messages"` // the last 64, oldest first
}

// Message is one message of a session, without its contents.
type Message struct {
	Time      time.Time `json:"time"`
	Direction string    `json:"direction"`             // "from_client" or "to_client"
	Kind      string    `json:"kind"`                  // "request", "response" or "notification"
	Method    string    `json:"method,omitempty"`      // of a response: its request's
	ID        string    `json:"id,omitempty"`          // as it stands in the message, the first 32 bytes
	Bytes     int       `json:"bytes"`                 // of the message
	Millis    *float64  `json:"duration_ms,omitempty"` // of a response: since its request came
	Reason    string    `json:"reason,omitempty"`      // of an error of Signalbox itself
}

// ReplicaList answers GET /api/v1/replicas. Without a shared store it is this
// process alone, without an id.
type ReplicaList struct {
	Replicas []Replica `json:"replicas"`
	Error    string    `json:"error,omitempty"` // the store is out of reach: they are those known from before
}

// Replica is one process of those that share a store.
type Replica struct {
	ID           string  `json:"id"`
	Address      string  `json:"address,omitempty"` // that others dial
	Self         bool    `json:"self"`
	LeaseSeconds float64 `json:"lease_seconds,omitempty"` // what is left of its lease; none: not known
	Version      string  `json:"version,omitempty"`       // of this one
}

// Series answers GET /api/v1/series: the last 15 minutes, oldest bucket first, the
// one that is being filled last.
type Series struct {
	BucketSeconds float64  `json:"bucket_seconds"`
	Buckets       []Bucket `json:"buckets"`
}

// Bucket is what happened in one part of a Series. What Signalbox added to the time
// of calls is null where none was measured.
type Bucket struct {
	Start    time.Time `json:"start"`
	Calls    int       `json:"calls"`    // that ended
	Measured int       `json:"measured"` // calls whose added time is known
	MedianMS *float64  `json:"added_ms_median"`
	P99MS    *float64  `json:"added_ms_p99"`
	MaxMS    *float64  `json:"added_ms_max"`
}

// RefusalList answers GET /api/v1/refusals: the last 200, newest first.
type RefusalList struct {
	Refusals []Refusal `json:"refusals"`
}

// Refusal is a request that was refused or a message that was dropped. Equal ones
// that follow each other are one.
type Refusal struct {
	What    string    `json:"what"`   // "refused" or "dropped"
	Reason  string    `json:"reason"` // the metrics' label
	Server  string    `json:"server,omitempty"`
	Session string    `json:"session,omitempty"` // short hash
	Detail  string    `json:"detail,omitempty"`  // a method, or what the rules refused by its name
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Count   int       `json:"count"`
}

// Failure is the body of an answer that is none of 2xx, of the API itself.
type Failure struct {
	Error string `json:"error"`
}
