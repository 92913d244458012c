package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// sdkKind is one way to run a server of an SDK.
type sdkKind struct {
	Name      string `json:"name"`
	URL       string `json:"url"` // at Signalbox, without the endpoint
	Transport string `json:"transport"`
	Sessions  bool   `json:"sessions"`
	Streams   bool   `json:"streams"` // answers in event streams, so that more than the answer can come

	flags []string
	start func(t *testing.T, flags ...string) *program
}

func sdkKinds() []sdkKind {
	var kinds []sdkKind
	for name, start := range map[string]func(*testing.T, ...string) *program{"go": sdkServer, "typescript": typescriptServer} {
		dash := map[string]string{"go": "-", "typescript": "--"}[name]
		kinds = append(kinds,
			sdkKind{Name: name, Sessions: true, Streams: true, start: start},
			sdkKind{Name: name + "-json", Sessions: true, start: start, flags: []string{dash + "json"}},
			sdkKind{Name: name + "-stateless", Streams: true, start: start, flags: []string{dash + "stateless"}},
			sdkKind{Name: name + "-stateless-json", start: start, flags: []string{dash + "stateless", dash + "json"}},
		)
	}
	return kinds
}

// TestSDKServers has servers of both SDKs behind one Signalbox, each with and without
// sessions, and with answers in JSON and in event streams. The raw client and both SDKs
// use each of them over both transports.
func TestSDKServers(t *testing.T) {
	kinds := sdkKinds()
	config := "mcpServers:\n"
	for _, k := range kinds {
		config += fmt.Sprintf("  %s:\n    url: %s/mcp\n", k.Name, k.start(t, k.flags...).url())
	}
	b := box.StartConfig(t, config)
	for i := range kinds {
		kinds[i].URL = b.URL + "/servers/" + kinds[i].Name
	}
	for _, k := range kinds {
		t.Run("raw, "+k.Name, func(t *testing.T) {
			c := rawclient.New(k.URL)
			defer c.Close()
			for _, transport := range []string{"streamable", "sse"} {
				k.Transport = transport
				k.visit(t, c)
			}
			k.checkEnds(t, c, 1) // of HTTP+SSE, Signalbox ends it a moment later
		})
	}
	t.Run("go", func(t *testing.T) { visitWithGo(t, kinds) })
	t.Run("typescript", func(t *testing.T) { visitWithTypescript(t, kinds) })
	b.EventuallyMetric(t, box.MetricSessions, 0)
	for _, k := range kinds {
		c := rawclient.New(k.URL)
		defer c.Close()
		k.checkEnds(t, c, 7) // two of each client, and the look at what the raw one left
	}
}

// visit does what a server of this kind can do.
func (k sdkKind) visit(t *testing.T, c *rawclient.Client) {
	t.Helper()
	messages := make(chan rawclient.Message, 100)
	o := rawclient.Options{Capabilities: `{"elicitation":{}}`, OnMessage: func(m rawclient.Message) {
		if k.Streams || m.Method != "notifications/progress" { // it has no place to be, and may come anywhere or not at all
			messages <- m
		}
	}}
	s := k.open(t, c, o)
	m, err := s.Call(t.Context(), "1", "tools/list", "{}")
	if err != nil || !strings.Contains(string(m.Result), `"name":"echo"`) {
		t.Errorf("%s: tools: %.300s, %v", k.Transport, m.Raw, err)
	}
	m, err = s.Call(t.Context(), `"1"`, "tools/call", `{"name":"echo","arguments":{"a":[1.5,"\u2028"]}}`)
	if err != nil || !strings.Contains(string(m.Result), `"a":[1.5,`) {
		t.Errorf("%s: echo: %s, %v", k.Transport, m.Raw, err)
	}
	ended := start(t, s, "2", "progress", `{"n":3}`)
	for range 3 {
		if !k.Streams {
			break // there is no room for it in a JSON answer
		}
		if m := receive(t, messages); m.Method != "notifications/progress" || !strings.Contains(string(m.Params), `"progressToken":2`) {
			t.Errorf("%s: got %s", k.Transport, m.Raw)
		}
	}
	if m := receive(t, ended); m.Result == nil {
		t.Errorf("%s: progress: %s", k.Transport, m.Raw)
	}
	if k.Sessions && k.Streams {
		elicit(t, s, messages)
	}
	if k.Sessions {
		subscribe(t, s, messages)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("%s: close: %v", k.Transport, err)
	}
}

func (k sdkKind) open(t *testing.T, c *rawclient.Client, o rawclient.Options) rawclient.Session {
	t.Helper()
	var s rawclient.Session
	var err error
	if k.Transport == "sse" {
		s, err = c.Legacy(t.Context(), o)
	} else {
		s, err = c.Streamable(t.Context(), o)
	}
	if err != nil {
		t.Fatalf("%s over %s: %v", k.Name, k.Transport, err)
	}
	return s
}

// elicit answers a question that the server asks within a call.
func elicit(t *testing.T, s rawclient.Session, messages <-chan rawclient.Message) {
	t.Helper()
	ended := start(t, s, "3", "ask", `{"method":"elicitation/create"}`)
	question := receive(t, messages)
	if question.Method != "elicitation/create" {
		t.Fatalf("instead of a question came %s", question.Raw)
	}
	if err := s.Respond(t.Context(), string(question.ID), `{"action":"accept","content":{"name":"Grace"}}`); err != nil {
		t.Fatal(err)
	}
	if m := receive(t, ended); !strings.Contains(string(m.Result), "Grace") {
		t.Errorf("asked and answered: %s", m.Raw)
	}
}

// subscribe hears of a change on the session's own stream.
func subscribe(t *testing.T, s rawclient.Session, messages <-chan rawclient.Message) {
	t.Helper()
	updates, done := ownStream(t, s, messages)
	defer done()
	if m, err := s.Call(t.Context(), "4", "resources/subscribe", `{"uri":"test://a"}`); err != nil || m.Result == nil {
		t.Fatalf("subscribe: %s, %v", m.Raw, err)
	}
	mustCall(t, s, "5", "updated", `{"uri":"test://a"}`)
	if m := receive(t, updates); m.Method != "notifications/resources/updated" || !strings.Contains(string(m.Params), "test://a") {
		t.Errorf("got %s", m.Raw)
	}
}

// ownStream is what the server says of itself: for Streamable HTTP a stream that
// done closes, for HTTP+SSE the messages that come in any case.
func ownStream(t *testing.T, s rawclient.Session, messages <-chan rawclient.Message) (updates <-chan rawclient.Message, done func()) {
	t.Helper()
	streamable, ok := s.(*rawclient.Streamable)
	if !ok {
		return messages, func() {}
	}
	stream, err := streamable.Listen(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return nextOn(t, stream), func() { stream.Close() }
}

// nextOn is the next message on a stream that is no progress.
func nextOn(t *testing.T, stream *rawclient.Stream) <-chan rawclient.Message {
	next := make(chan rawclient.Message, 1)
	go func() {
		m, err := stream.Next()
		for err == nil && m.Method == "notifications/progress" {
			m, err = stream.Next()
		}
		if err != nil {
			t.Errorf("the session's own stream: %v", err)
		}
		next <- m
	}()
	return next
}

// checkEnds waits until the server was told of the ends of that many sessions, if it has
// sessions at all.
func (k sdkKind) checkEnds(t *testing.T, c *rawclient.Client, atLeast int) {
	t.Helper()
	s := k.open(t, c, rawclient.Options{})
	defer s.Close(t.Context())
	box.Eventually(t, fmt.Sprintf("%s: the server saw %d times DELETE", k.Name, atLeast), func() string {
		m, err := s.Call(t.Context(), "1", "tools/call", `{"name":"stats"}`)
		if err != nil {
			t.Fatal(err)
		}
		var result struct {
			StructuredContent struct{ Received map[string]int }
		}
		if err := json.Unmarshal(m.Result, &result); err != nil {
			t.Fatalf("%s: %v", m.Raw, err)
		}
		switch n := result.StructuredContent.Received["DELETE"]; {
		case !k.Sessions && n > 0:
			t.Errorf("%s: %d times DELETE for a server without sessions", k.Name, n)
		case k.Sessions && n < atLeast:
			return fmt.Sprint(n)
		}
		return ""
	})
}

func visitWithGo(t *testing.T, kinds []sdkKind) {
	for _, k := range kinds {
		for name, transport := range goTransports {
			t.Run(k.Name+", "+name, func(t *testing.T) {
				c := connectGo(t, transport(k.URL))
				if k.Sessions && k.Streams {
					testGoSession(t, c)
				} else {
					testGoCalls(t, c, k.Streams)
				}
				if err := c.session.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		}
	}
}

func visitWithTypescript(t *testing.T, kinds []sdkKind) {
	var targets []sdkKind
	for _, k := range kinds {
		for _, k.Transport = range []string{"streamable", "sse"} {
			targets = append(targets, k)
		}
	}
	text, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Server, Echo, Updated string
		Tools, Asked          []string
		Progress              []int
		N                     int
	}
	runTypescript(t, "sdk.mjs", &all, "--targets", string(text))
	if len(all) != len(targets) {
		t.Fatalf("%d of %d targets were visited", len(all), len(targets))
	}
	for i, seen := range all {
		k := targets[i]
		if seen.Echo != "héllo\u2028🚦" || seen.N != 3 || !slices.Contains(seen.Tools, "echo") {
			t.Errorf("%s over %s: %+v", k.Name, k.Transport, seen)
		}
		if k.Streams && len(seen.Progress) < 2 || len(seen.Progress) > 0 && !slices.IsSorted(seen.Progress) {
			t.Errorf("%s over %s: progress %v", k.Name, k.Transport, seen.Progress)
		}
		if k.Sessions && seen.Updated != "test://b" {
			t.Errorf("%s over %s: updated %q", k.Name, k.Transport, seen.Updated)
		}
		asked := strings.Join(seen.Asked, "\n")
		for _, want := range []string{"sampled: Hello", "Ada Lovelace", "file:///srv/e2e-root"} {
			if k.Sessions && k.Streams && !strings.Contains(asked, want) {
				t.Errorf("%s over %s: asked, the client answered %s", k.Name, k.Transport, asked)
			}
		}
	}
}
