package remote

import "github.com/signalbox-mcp/signalbox/internal/mcp"

// Why a message of an HTTP server was not passed on. They are the metric's
// labels, and mean what they do for a process.
const (
	dropOversize = "oversize"        // an event above the limit
	dropNoise    = "noise"           // an event that is no JSON-RPC message
	dropForeign  = "foreign_id"      // a response that nobody asked for
	dropRequest  = "refused_request" // a request where the revision has none
)

func (s *Server) dropped(reason string, method mcp.Method) {
	if s.cfg.Dropped != nil {
		s.cfg.Dropped(reason, method)
	}
}
