package modern

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
)

// Handler answers one request. Its error is a *Error, or an internal one.
type Handler func(context.Context, *Call) (Result, error)

// Server is what both transports serve. Set it up before it serves.
type Server struct {
	Name         string
	Capabilities map[string]any
	Handlers     map[string]Handler // by method; server/discover and subscriptions/listen are here already
	// ParamHeaders are the x-mcp-header annotations: tool → argument → name of the header.
	ParamHeaders map[string]map[string]string
	// Refusal is the code of the error that initialize gets over stdio; 0: -32022.
	Refusal int

	mu        sync.Mutex
	listeners map[*listener]bool // guarded by mu
}

// Call is one request.
type Call struct {
	ID     json.RawMessage
	Method string
	Params Params

	send func(any) // writes a message to where the response will go
}

// run answers a request by exactly one response, unless ctx ends first.
func (s *Server) run(ctx context.Context, m message, send func(any)) {
	result, err := s.answer(ctx, m, send)
	if ctx.Err() != nil {
		return // whoever cancels wants nothing more
	}
	if err != nil {
		send(response{JSONRPC: "2.0", ID: m.ID, Error: asError(err)})
		return
	}
	send(response{JSONRPC: "2.0", ID: m.ID, Result: result})
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Result  Result          `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

type notification struct {
	JSONRPC string         `json:"jsonrpc"`
	Method  string         `json:"method"`
	Params  map[string]any `json:"params"`
}

func (s *Server) answer(ctx context.Context, m message, send func(any)) (Result, error) {
	c := &Call{ID: m.ID, Method: m.Method, send: send}
	if len(m.Params) > 0 {
		if err := json.Unmarshal(m.Params, &c.Params); err != nil {
			return nil, &Error{Code: -32602, Message: err.Error(), Status: http.StatusBadRequest}
		}
	}
	if err := c.checkMeta(); err != nil {
		return nil, err
	}
	var result Result
	var err error
	switch handler := s.Handlers[m.Method]; {
	case m.Method == "server/discover":
		result = Result{"supportedVersions": []string{Revision}, "capabilities": s.Capabilities}
	case m.Method == "subscriptions/listen":
		result, err = s.listen(ctx, c)
	case handler == nil:
		return nil, &Error{Code: -32601, Message: "Method not found: " + m.Method, Status: http.StatusNotFound}
	default:
		result, err = handler(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return result, s.complete(c, result)
}

// checkMeta refuses requests that do not say what every request has to say.
func (c *Call) checkMeta() error {
	meta := c.Params.Meta
	switch {
	case meta.Version == nil:
		return &Error{Code: -32602, Message: "_meta lacks " + metaPrefix + "protocolVersion", Status: http.StatusBadRequest}
	case *meta.Version != Revision:
		return unsupported(*meta.Version, -32022)
	case meta.Capabilities == nil:
		return &Error{Code: -32602, Message: "_meta lacks " + metaPrefix + "clientCapabilities", Status: http.StatusBadRequest}
	case meta.LogLevel != "" && !slices.Contains(levels, meta.LogLevel):
		return InvalidParams("unknown log level %q", meta.LogLevel)
	}
	return nil
}

func unsupported(requested string, code int) *Error {
	return &Error{
		Code: code, Message: "Unsupported protocol version", Status: http.StatusBadRequest,
		Data: map[string]any{"supported": []string{Revision}, "requested": requested},
	}
}

// cacheable are the methods whose complete results say how long they hold.
var cacheable = []string{
	"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read",
}

// complete adds what belongs to every result, and refuses questions to clients that
// cannot answer them.
func (s *Server) complete(c *Call, r Result) error {
	if r["resultType"] == nil {
		r["resultType"] = "complete"
	}
	if questions, ok := r["inputRequests"].(map[string]Question); ok {
		for _, q := range questions {
			if err := c.Require(capabilityOf[q.Method]); err != nil {
				return err
			}
		}
	}
	if r["resultType"] == "complete" && slices.Contains(cacheable, c.Method) {
		r["ttlMs"], r["cacheScope"] = 0, "private"
	}
	meta, _ := r["_meta"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		r["_meta"] = meta
	}
	meta[metaPrefix+"serverInfo"] = map[string]string{"name": s.Name, "version": "1"}
	return nil
}

// Require fails with -32021 where the client did not declare a capability.
func (c *Call) Require(capability string) error {
	if _, ok := c.Params.Meta.Capabilities[capability]; ok {
		return nil
	}
	return &Error{
		Code: -32021, Message: "the client did not declare " + capability, Status: http.StatusBadRequest,
		Data: map[string]any{"requiredCapabilities": map[string]any{capability: map[string]any{}}},
	}
}

// Progress notifies the client, if it asked for that.
func (c *Call) Progress(progress, total float64, text string) {
	if token := c.Params.Meta.ProgressToken; token != nil {
		c.notify("notifications/progress", map[string]any{"progressToken": token, "progress": progress, "total": total, "message": text})
	}
}

// levels of log messages, the least first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Log sends a log message, if the client asked for those of this level.
func (c *Call) Log(level string, data any) {
	if wanted := c.Params.Meta.LogLevel; wanted != "" && slices.Index(levels, level) >= slices.Index(levels, wanted) {
		c.notify("notifications/message", map[string]any{"level": level, "data": data})
	}
}

func (c *Call) notify(method string, params map[string]any) {
	c.send(notification{JSONRPC: "2.0", Method: method, Params: params})
}
