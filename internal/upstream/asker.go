package upstream

import "github.com/signalbox-mcp/signalbox/internal/mcp"

// ErrNoAsker is what a request of the per-request era gets from a server that is no
// Asker.
var ErrNoAsker = Errorf(mcp.CodeInternal, "era", "this server is not reached by requests of the per-request era")

// Asker is a server of the per-request era (MCP 2026-07-28), where each request
// stands for itself: there is no handshake and no session.
type Asker interface {
	// Ask sends one request, whose params._meta names the revision, the client's
	// capabilities and the rest (2026-07-28, basic/index, "_meta"). The sink gets
	// the notifications of the request's stream (relation Own) and the response
	// (Reply), all under the request's own id, token and subscription id. Cancel,
	// which is what the end of a client's stream means in this era, tells the
	// server. After an error the sink is not used: nothing was sent. An *Elsewhere
	// says that another replica must be asked.
	Ask(Request, Sink) (Call, error)
}

// Elsewhere says that a request goes on with something that only another
// replica has.
type Elsewhere struct{ Replica string }

func (e *Elsewhere) Error() string {
	return "another replica has the call that this request goes on with"
}
