package rawclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Message is one JSON-RPC message: the bytes of each member, nil where it is absent.
type Message struct {
	Raw     []byte
	EventID string // of the event that carried it, if any

	ID, Params, Result, Error json.RawMessage
	Method                    string
}

// ParseMessage takes a message apart. It keeps raw.
func ParseMessage(raw []byte) (Message, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return Message{}, fmt.Errorf("message %.200q: %w", raw, err)
	}
	m := Message{
		Raw: raw, ID: members["id"],
		Params: members["params"], Result: members["result"], Error: members["error"],
	}
	if method, ok := members["method"]; ok {
		if err := json.Unmarshal(method, &m.Method); err != nil {
			return Message{}, fmt.Errorf("method of %.200q: %w", raw, err)
		}
	}
	return m, nil
}

// IsResponse tells a response from a request or a notification.
func (m Message) IsResponse() bool { return m.Method == "" }

// request is the text of a request, or of a notification where id is empty.
func request(id, method, params string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0"`)
	if id != "" {
		b.WriteString(`,"id":` + id)
	}
	fmt.Fprintf(&b, `,"method":%q`, method)
	if params != "" {
		b.WriteString(`,"params":` + params)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// ErrNoResponse is returned for a call whose stream ended without its response.
var ErrNoResponse = errors.New("the stream ended without the response")

// StatusError is an HTTP answer that carries no message.
type StatusError struct {
	Status int
	Body   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP status %d: %.300s", e.Status, e.Body) }
