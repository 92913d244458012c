package rawclient

import (
	"context"
	"net/http"
)

// Session is an open session of either transport, after its handshake. Its methods may
// be called at once.
type Session interface {
	// Call sends a request and returns its response, be it a result or an error. It
	// returns ErrNoResponse where the response cannot come any more.
	Call(ctx context.Context, id, method, params string) (Message, error)
	// Notify sends a notification.
	Notify(ctx context.Context, method, params string) error
	// Respond answers a request of the server with a result.
	Respond(ctx context.Context, id, result string) error
	// Close ends the session as its transport does: DELETE, or the end of the stream.
	Close(ctx context.Context) error
}

// Options of a session; the zero value is a client of the newest handshake revision
// that can do nothing.
type Options struct {
	Version      string // asked for; 2025-11-25, or 2024-11-05 for the legacy transport
	Capabilities string // a JSON object
	ClientInfo   string // a JSON object; rawclient, version 1

	// OnMessage takes what is no response to a call: requests, notifications, and
	// responses that nobody asked for. It is called from several goroutines at once
	// and must not wait for the session.
	OnMessage func(Message)
}

func (o Options) withDefaults(version string) Options {
	if o.Version == "" {
		o.Version = version
	}
	if o.Capabilities == "" {
		o.Capabilities = "{}"
	}
	if o.ClientInfo == "" {
		o.ClientInfo = `{"name":"rawclient","version":"1"}`
	}
	if o.OnMessage == nil {
		o.OnMessage = func(Message) {}
	}
	return o
}

// initializeID is no id that a test counts from 1 upwards.
const initializeID = `"initialize"`

func (o Options) initializeParams() string {
	return `{"protocolVersion":"` + o.Version + `","capabilities":` + o.Capabilities + `,"clientInfo":` + o.ClientInfo + `}`
}

// postHeader has what every POST of a message carries.
func postHeader() http.Header {
	return http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json, text/event-stream"},
	}
}
