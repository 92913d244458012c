package load

import (
	"bytes"
	"fmt"
)

const (
	perRequestRevision = "2026-07-28"
	perRequestTool     = "echo" // what perRequest calls: Mcp-Name has to name it

	// perRequestMeta is what each request of the era says of its client.
	perRequestMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + perRequestRevision +
		`","io.modelcontextprotocol/clientCapabilities":{}}`

	discover = `{"method":"server/discover","params":{` + perRequestMeta + `},"jsonrpc":"2.0","id":0}`
)

// perRequest is a client of the per-request era: a connection, and headers that repeat what the
// body says (2026-07-28, basic/transports/streamable-http). It calls one tool.
type perRequest struct{ streamable }

// perRequestOn asks what the server speaks, as such clients do first.
func perRequestOn(c *conn, e Endpoint) (*perRequest, error) {
	head := head1("POST", e.MCP, e.Addr) + "MCP-Protocol-Version: " + perRequestRevision + "\r\nMcp-Method: "
	s := &perRequest{streamable{c: c, endpoint: e, post: head + "server/discover\r\nContent-Length: "}}
	reply, err := s.Call([]byte(discover))
	if err != nil {
		return nil, fmt.Errorf("server/discover: %w", err)
	}
	_, versions, _ := bytes.Cut(reply.Response, []byte(`"supportedVersions":[`))
	versions, _, _ = bytes.Cut(versions, []byte("]"))
	if !bytes.Contains(versions, []byte(`"`+perRequestRevision+`"`)) {
		return nil, fmt.Errorf("server/discover: %s", excerpt(reply.Response))
	}
	s.post = head + "tools/call\r\nMcp-Name: " + perRequestTool + "\r\nContent-Length: "
	return s, nil
}

// End closes the connection; there is no session to end.
func (s *perRequest) End() { s.c.close() }

// NewPerRequestCalls is NewCalls for a client of the kind PerRequest.
func NewPerRequestCalls(tag string, size int) *Calls {
	return newCalls(perRequestTool, tag, size, `"},`+perRequestMeta+beforeID)
}
