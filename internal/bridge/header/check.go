package header

import (
	"net/http"
	"strconv"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Check compares Mcp-Method and Mcp-Name with the body that they repeat. A request
// has to have them; of a notification what is there has to be true. The error is
// an *upstream.Error of code -32020, to be sent with HTTP 400.
func Check(h http.Header, req *upstream.Request) error {
	m := &req.Msg
	if m.Kind == wire.Response {
		return nil
	}
	required := m.Kind == wire.Request
	if err := literal(h, mcp.HeaderMethod, string(m.MethodName()), required); err != nil {
		return err
	}
	span, has := nameOf(req)
	if !has {
		return nil
	}
	token := m.Bytes(span)
	name, ok := wire.Unquote(token)
	if !ok { // no name to repeat: the server says so
		if values := h[mcp.HeaderName]; len(values) > 0 {
			return mismatch(mcp.HeaderName, values, "nothing: the body has no such value")
		}
		return nil
	}
	return carries(h, mcp.HeaderName, string(name), required)
}

// Name is the value that Mcp-Name repeats; false: the method has none, or the
// body has not.
func Name(req *upstream.Request) (string, bool) {
	span, has := nameOf(req)
	if !has {
		return "", false
	}
	name, ok := wire.Unquote(req.Msg.Bytes(span))
	return string(name), ok
}

// nameOf is where the body has what Mcp-Name repeats.
func nameOf(req *upstream.Request) (wire.Span, bool) {
	p := &req.Msg.P
	switch req.Method {
	case mcp.ToolsCall, mcp.PromptsGet:
		return p.Name, true
	case mcp.ResourcesRead:
		return p.URI, true
	case mcp.TasksGet, mcp.TasksUpdate, mcp.TasksCancel:
		return p.TaskID, true
	}
	return wire.Span{}, false
}

// literal compares a header that is never encoded.
func literal(h http.Header, name, want string, required bool) error {
	values := h[name]
	if len(values) == 0 && !required || len(values) == 1 && values[0] == want {
		return nil
	}
	return mismatch(name, values, quote(want))
}

// carries compares a header that may be encoded.
func carries(h http.Header, name, want string, required bool) error {
	values := h[name]
	if len(values) == 0 && !required {
		return nil
	}
	if len(values) == 1 {
		if got, ok := Decode(values[0]); ok && got == want {
			return nil
		}
	}
	return mismatch(name, values, quote(want))
}

// mismatch names the header, what it says, and what it should.
func mismatch(name string, values []string, want string) error {
	seen := "is missing"
	switch {
	case len(values) > 1:
		seen = "stands there more than once"
	case len(values) == 1:
		seen = "says " + quote(values[0])
		if _, ok := Decode(values[0]); !ok {
			seen += ", which is no valid encoding,"
		}
	}
	return upstream.Errorf(mcp.CodeHeaderMismatch, "header_mismatch", "Header mismatch: %s %s; by the request's body it must be %s", name, seen, want)
}

// quote makes s fit for a message: printable, and not long.
func quote(s string) string {
	const most = 100
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
