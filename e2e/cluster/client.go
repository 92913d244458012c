package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// Owner makes the options of a client session that says whose it is.
func Owner(name string) rawclient.Options {
	return rawclient.Options{Capabilities: `{"sampling":{},"roots":{},"experimental":{"test":{"owner":"` + name + `"}}}`}
}

var tags atomic.Int64

// Tag is text that was never used before.
func Tag() string { return fmt.Sprintf("tag-%d", tags.Add(1)) }

// Client is a session at /mcp that sends each request to an address of its choice.
type Client struct {
	Owner, Server, ID string

	t testing.TB
	c *rawclient.Client
}

// Open begins a session at base.
func Open(t testing.TB, base, server string) *Client {
	t.Helper()
	c, err := TryOpen(t, base, server)
	if err != nil {
		t.Fatalf("open a session of %s at %s: %v", server, base, err)
	}
	return c
}

// TryOpen is Open where it may fail, with a *rawclient.StatusError for a refusal.
func TryOpen(t testing.TB, base, server string) (*Client, error) {
	c := &Client{Owner: Tag(), Server: server, t: t, c: rawclient.New(base)}
	c.c.Header.Set("Connection", "close") // a balancer that gets a new configuration closes idle ones
	t.Cleanup(c.c.Close)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.c.StreamableAt(ctx, Path(server, "mcp"), Owner(c.Owner))
	if err != nil {
		return nil, err
	}
	c.ID = s.ID
	return c, nil
}

// Answer is what came back to one request.
type Answer struct {
	Status  int // 0: none came, see Err
	Header  http.Header
	Body    string
	Err     error
	Tag     string // of the request
	Elapsed time.Duration
}

func (a Answer) String() string {
	return fmt.Sprintf("status %d, %v, after %v: %.300s", a.Status, a.Err, a.Elapsed.Round(time.Millisecond), a.Body)
}

// Reason is error.data.reason of an error of Signalbox.
func (a Answer) Reason() string { return reasonOf(a.Body) }

func reasonOf(body string) string {
	_, rest, ok := strings.Cut(body, `"source":"signalbox","reason":"`)
	if !ok {
		return ""
	}
	reason, _, _ := strings.Cut(rest, `"`)
	return reason
}

// Echo calls the tool echo at base ("": where the session was opened).
func (c *Client) Echo(base string) Answer { return c.Call(base, "echo", "") }

// Call calls a tool, with more arguments than owner and tag, and reads the answer to its end.
func (c *Client) Call(base, tool, arguments string) Answer {
	tag := Tag()
	return c.Post(base, tag, CallBody(tag, tool, c.Owner, tag, arguments))
}

// CallBody is a call under the string id, with a progress token that is the tag.
func CallBody(id, tool, owner, tag, arguments string) string {
	if arguments != "" {
		arguments = "," + arguments
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":{"owner":%q,"tag":%q%s},"_meta":{"progressToken":%q}}}`,
		id, tool, owner, tag, arguments, tag)
}

// Post sends a body in the session.
func (c *Client) Post(base, tag, body string) Answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := Answer{Tag: tag}
	begun := time.Now()
	defer func() { a.Elapsed = time.Since(begun) }()
	resp, err := c.Do(ctx, http.MethodPost, base, tag, "", body)
	if err != nil {
		a.Err = err
		return a
	}
	defer resp.Body.Close()
	a.Status, a.Header = resp.StatusCode, resp.Header
	var b bytes.Buffer
	_, a.Err = io.Copy(&b, resp.Body)
	a.Body, a.Elapsed = b.String(), time.Since(begun)
	return a
}

// Do sends one request of the session, with an X-Tag for the log of the balancer.
func (c *Client) Do(ctx context.Context, method, base, tag, lastEvent, body string) (*http.Response, error) {
	h := http.Header{"Mcp-Protocol-Version": {"2025-11-25"}, "X-Tag": {tag}, "Accept": {"application/json, text/event-stream"}}
	if c.ID != "" {
		h.Set("Mcp-Session-Id", c.ID)
	}
	if body != "" {
		h.Set("Content-Type", "application/json")
	}
	if method == http.MethodGet {
		h.Set("Accept", "text/event-stream")
	}
	if lastEvent != "" {
		h.Set("Last-Event-Id", lastEvent)
	}
	return c.c.Do(ctx, method, base+Path(c.Server, "mcp"), h, []byte(body))
}

// Stream sends a request and returns its answer as a stream of events.
func (c *Client) Stream(method, base, tag, lastEvent, body string) *Events {
	c.t.Helper()
	events, refused := c.TryStream(method, base, tag, lastEvent, body)
	if events == nil {
		c.t.Fatalf("%s %s: %v", method, c.Server, refused)
	}
	return events
}

// TryStream is Stream where the answer may be none; then it is told.
func (c *Client) TryStream(method, base, tag, lastEvent, body string) (*Events, Answer) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	begun := time.Now()
	resp, err := c.Do(ctx, method, base, tag, lastEvent, body)
	if err != nil {
		cancel()
		return nil, Answer{Err: err, Tag: tag, Elapsed: time.Since(begun)}
	}
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return newEventsReader(resp.Body, cancel), Answer{}
	}
	defer cancel()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return nil, Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(b), Err: err, Tag: tag, Elapsed: time.Since(begun)}
}

// Delete ends the session; status 0 where no answer came.
func (c *Client) Delete(base string) (status int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := c.Do(ctx, http.MethodDelete, base, Tag(), "", "")
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// Echoed tells what is wrong with the answer to a call, "" for nothing: the request's own
// id, and the arguments that it had.
func (c *Client) Echoed(a Answer) string { return Check(c.Owner, a) }

// Check is Echoed for the session of owner.
func Check(owner string, a Answer) string {
	if a.Err != nil || a.Status != http.StatusOK {
		return a.String()
	}
	return CheckText(owner, a.Tag, a.Body)
}

// CheckText looks at all messages in the body of an answer: each has to name the tag and
// the owner, and the last one the id.
func CheckText(owner, tag, body string) string {
	var all []string
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			line = strings.TrimSpace(data)
		}
		if strings.HasPrefix(line, "{") {
			all = append(all, line)
		}
	}
	for i, text := range all {
		var m struct {
			ID     string
			Method string
			Result *struct {
				StructuredContent struct{ Owner, Tag string }
			}
			Params struct{ ProgressToken, Message string }
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return fmt.Sprintf("%v: %.200s", err, text)
		}
		switch {
		case m.Method == "notifications/progress":
			if m.Params.ProgressToken != tag || !strings.Contains(m.Params.Message, `"`+owner+`"`) || !strings.Contains(m.Params.Message, `"`+tag+`"`) {
				return "WRONG progress: " + text
			}
		case i < len(all)-1:
			return "another message before the answer: " + text
		case m.ID != tag:
			return "WRONG id: " + text
		case m.Result == nil:
			return "an error: " + text
		case m.Result.StructuredContent.Owner != owner || m.Result.StructuredContent.Tag != tag:
			return fmt.Sprintf("WRONG answer to %s of %s: %s", tag, owner, text)
		}
		if m.Result != nil && i == len(all)-1 {
			return ""
		}
	}
	return fmt.Sprintf("no answer in %.200q", body)
}

// Get opens the session's own stream and gives it up.
func (c *Client) Get(base string) Answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begun := time.Now()
	resp, err := c.Do(ctx, http.MethodGet, base, Tag(), "", "")
	if err != nil {
		return Answer{Err: err, Elapsed: time.Since(begun)}
	}
	defer resp.Body.Close()
	a := Answer{Status: resp.StatusCode, Header: resp.Header, Elapsed: time.Since(begun)}
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(resp.Body)
		a.Body, a.Err = string(b), err
	}
	return a
}

// Initialize asks for one more session, which is left as it is.
func (c *Client) Initialize(base string) Answer {
	other := &Client{Owner: c.Owner, Server: c.Server, t: c.t, c: c.c}
	return other.Post(base, Tag(), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
}

// KeepAlive has the session's requests share connections from now on.
func (c *Client) KeepAlive() { c.c.Header.Del("Connection") }
