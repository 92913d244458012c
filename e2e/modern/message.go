package modern

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// Revision is the only one that is spoken here.
const Revision = "2026-07-28"

const metaPrefix = "io.modelcontextprotocol/"

// message is what came in: a request, a notification, or what must not come.
type message struct {
	JSONRPC string
	ID      json.RawMessage
	Method  string
	Params  json.RawMessage
	Result  json.RawMessage
	Error   json.RawMessage
}

func parse(raw []byte) (message, error) {
	var m message
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '[' {
		return m, &Error{Code: -32600, Message: "this revision has no batches", Status: http.StatusBadRequest}
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, &Error{Code: -32700, Message: err.Error(), Status: http.StatusBadRequest}
	}
	if m.JSONRPC != "2.0" || m.Method == "" {
		return m, &Error{Code: -32600, Message: "clients send requests and notifications only", Status: http.StatusBadRequest}
	}
	return m, nil
}

// Params are those of every method that is served.
type Params struct {
	Name, URI      string
	Arguments      json.RawMessage
	InputResponses map[string]json.RawMessage // key of the question → answer
	RequestState   *string                    // nil: absent, which is not the empty string
	Notifications  Filter                     // of subscriptions/listen
	Meta           Meta                       `json:"_meta"`
}

// Meta is what a client says about itself in every request.
type Meta struct {
	Version       *string                    `json:"io.modelcontextprotocol/protocolVersion"`
	Capabilities  map[string]json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
	LogLevel      string                     `json:"io.modelcontextprotocol/logLevel"`
	ProgressToken json.RawMessage            `json:"progressToken"`
}

// Result is the members of a result. What belongs to every result is added to it.
type Result map[string]any

// Error is a JSON-RPC error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
	Status  int    `json:"-"` // of HTTP; 0: 200
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// asError makes what a handler returned an error that can be sent.
func asError(err error) *Error {
	if e, ok := err.(*Error); ok {
		return e
	}
	return &Error{Code: -32603, Message: err.Error()}
}

// InvalidParams is an error about the params of a request that is otherwise in order.
func InvalidParams(format string, args ...any) error {
	return &Error{Code: -32602, Message: fmt.Sprintf(format, args...)}
}

// Text is the result of a tool: one text.
func Text(text string) Result {
	return Result{"content": []any{map[string]any{"type": "text", "text": text}}}
}

// Question is a request to the client, to be answered in the next request.
type Question struct {
	Method string         `json:"method"`
	Params map[string]any `json:"params"`
}

// Elicit asks the user for a form.
func Elicit(text string, schema map[string]any) Question {
	return Question{"elicitation/create", map[string]any{"mode": "form", "message": text, "requestedSchema": schema}}
}

// Sample asks the client's model.
func Sample(text string) Question {
	return Question{"sampling/createMessage", map[string]any{
		"messages":  []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": text}}},
		"maxTokens": 100,
	}}
}

// Roots asks for the client's roots.
func Roots() Question { return Question{"roots/list", map[string]any{}} }

// InputRequired asks the client questions, and gives it a state to send back; none where
// state is empty.
func InputRequired(questions map[string]Question, state string) Result {
	r := Result{"resultType": "input_required", "inputRequests": questions}
	if state != "" {
		r["requestState"] = state
	}
	return r
}

// capabilityOf is what a client has to declare to be asked.
var capabilityOf = map[string]string{
	"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots",
}

// Object is the schema of an object with properties of these types, all required.
func Object(properties map[string]string) map[string]any {
	all, required := map[string]any{}, []string{}
	for name, kind := range properties {
		all[name] = map[string]any{"type": kind}
		required = append(required, name)
	}
	return map[string]any{"type": "object", "properties": all, "required": required}
}
