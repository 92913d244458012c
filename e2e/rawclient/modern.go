package rawclient

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Modern is a client of revision 2026-07-28: there is no session, every request says all.
// Its methods may be called at once.
type Modern struct {
	Path         string // of the endpoint
	Capabilities string // a JSON object, sent with every request
	Meta         string // more members of _meta, each with a comma before
	Header       http.Header

	c *Client
}

const modernRevision = "2026-07-28"

// Modern makes a client of /mcp that can answer every kind of question.
func (c *Client) Modern() *Modern {
	return &Modern{Path: "/mcp", Capabilities: `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`, c: c}
}

// Reply is the answer to one POST, read to its end.
type Reply struct {
	Status        int
	Header        http.Header
	Body          string
	Notifications []Message // that came before the response
	Response      Message   // empty where there was none
}

func (r Reply) String() string { return fmt.Sprintf("status %d: %.500s", r.Status, r.Body) }

// Code is that of the error, 0 for none.
func (r Reply) Code() int {
	var e struct{ Code int }
	if r.Response.Error == nil || json.Unmarshal(r.Response.Error, &e) != nil {
		return 0
	}
	return e.Code
}

// InputRequired is what a result asks for.
type InputRequired struct {
	ResultType    string
	InputRequests map[string]struct {
		Method string
		Params json.RawMessage
	}
	RequestState *string
}

// InputRequired reports whether the result asks for input.
func (r Reply) InputRequired() (in InputRequired, ok bool) {
	ok = r.Response.Result != nil && json.Unmarshal(r.Response.Result, &in) == nil && in.ResultType == "input_required"
	return in, ok
}

// Body is the text of a request; params is an object without _meta.
func (m *Modern) Body(id, method, params string) []byte {
	meta := `{"io.modelcontextprotocol/protocolVersion":"` + modernRevision + `","io.modelcontextprotocol/clientInfo":{"name":"rawclient","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":` + m.Capabilities + m.Meta + `}`
	inner := strings.TrimSpace(params[1 : len(params)-1])
	if inner != "" {
		inner = "," + inner
	}
	return request(id, method, `{"_meta":`+meta+inner+`}`)
}

// Call sends a request with the headers that its body calls for.
func (m *Modern) Call(ctx context.Context, id, method, params string) (Reply, error) {
	resp, err := m.Start(ctx, id, method, params)
	if err != nil {
		return Reply{}, err
	}
	defer resp.Body.Close()
	return readReply(resp, id)
}

// Start is Call where the answer is read by the caller.
func (m *Modern) Start(ctx context.Context, id, method, params string) (*http.Response, error) {
	h := postHeader()
	h.Set("MCP-Protocol-Version", modernRevision)
	h.Set("Mcp-Method", method)
	var named struct{ Name, URI string }
	if err := json.Unmarshal([]byte(params), &named); err != nil {
		return nil, fmt.Errorf("params %s: %w", params, err)
	}
	if name := named.Name + named.URI; name != "" {
		h.Set("Mcp-Name", headerValue(name))
	}
	for name, values := range m.Header {
		h[name] = values
	}
	return m.c.Do(ctx, http.MethodPost, m.Path, h, m.Body(id, method, params))
}

// headerValue encodes what a header cannot carry as it is.
func headerValue(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
		}
	}
	return s
}

func readReply(resp *http.Response, id string) (Reply, error) {
	r := Reply{Status: resp.StatusCode, Header: resp.Header}
	body, err := io.ReadAll(resp.Body)
	r.Body = string(body)
	if err != nil {
		return r, err
	}
	var messages []Message
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for events := newEventReader(bytes.NewReader(body)); ; {
			e, err := events.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return r, err
			}
			if e.Data == "" {
				continue
			}
			m, err := ParseMessage([]byte(e.Data))
			if err != nil {
				return r, err
			}
			messages = append(messages, m)
		}
	} else if len(body) > 0 {
		m, err := ParseMessage(body)
		if err != nil {
			return r, err
		}
		messages = append(messages, m)
	}
	for _, m := range messages {
		switch {
		case r.Response.Raw != nil:
			return r, fmt.Errorf("after the response came %.200s", m.Raw)
		case m.IsResponse() && (string(m.ID) == id || m.ID == nil):
			r.Response = m
		case m.IsResponse() || m.ID != nil:
			return r, fmt.Errorf("neither a notification nor the response to %s: %.200s", id, m.Raw)
		default:
			r.Notifications = append(r.Notifications, m)
		}
	}
	return r, nil
}

// Answers makes params of the retry: those of the first request, the answers by key, and
// the state as it came.
func (in InputRequired) Answers(params string, answer func(key, method string, params json.RawMessage) string) string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(params, "}") + `,"inputResponses":{`)
	first := true
	for key, q := range in.InputRequests {
		if !first {
			b.WriteByte(',')
		}
		first = false
		fmt.Fprintf(&b, "%q:%s", key, answer(key, q.Method, q.Params))
	}
	b.WriteByte('}')
	if in.RequestState != nil {
		state, err := json.Marshal(*in.RequestState)
		if err != nil {
			panic(err) // no string fails
		}
		b.WriteString(`,"requestState":` + string(state))
	}
	b.WriteByte('}')
	return b.String()
}
