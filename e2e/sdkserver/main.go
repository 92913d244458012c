//lint:file-ignore SA1019 Logging is deprecated as of 2026-07-28; here is a server of the revisions before.

// Command sdkserver is an MCP server over HTTP, made of the Go SDK: what a program that
// nobody here wrote says on the wire. It has the tools of fakeserver that an SDK can
// have, by the same names and with the same answers, Streamable HTTP at /mcp and, if it
// has sessions, HTTP+SSE at /sse. [tools] lists what it can do.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("sdkserver: ")
	addr := flag.String("http", "127.0.0.1:0", "listen at this `address`")
	name := flag.String("name", "sdkserver", "the name that answers carry")
	record := flag.String("record", "", "append a line for what happens to this `file`")
	stateless := flag.Bool("stateless", false, "have no sessions")
	json := flag.Bool("json", false, "answer in JSON, not in event streams")
	resume := flag.Bool("resume", false, "let clients resume event streams")
	flag.Parse()
	s := &server{name: *name, received: make(map[string]int), gates: make(map[string]chan struct{})}
	if *record != "" {
		var err error
		if s.record, err = os.OpenFile(*record, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
			log.Fatal(err)
		}
	}
	s.mcp = newMCP(s)
	get := func(*http.Request) *mcp.Server { return s.mcp }
	options := &mcp.StreamableHTTPOptions{Stateless: *stateless, JSONResponse: *json}
	if *resume {
		options.EventStore = mcp.NewMemoryEventStore(nil)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(get, options))
	if !*stateless {
		mux.Handle("/sse", mcp.NewSSEHandler(get, nil))
	}
	log.Fatal(http.ListenAndServe(*addr, s.seen(mux)))
}

// server is what all sessions share.
type server struct {
	name string
	mcp  *mcp.Server

	mu       sync.Mutex
	record   *os.File                 // nil: nobody asked for it
	running  int                      // calls
	received map[string]int           // method, of JSON-RPC or HTTP → how many came
	gates    map[string]chan struct{} // key → closed when it is released
}

func newMCP(s *server) *mcp.Server {
	ok := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	m := mcp.NewServer(&mcp.Implementation{Name: s.name, Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   ok,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	for name, run := range tools {
		m.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, s.tool(name, run))
	}
	for _, uri := range []string{"test://a", "test://b"} {
		m.AddResource(&mcp.Resource{URI: uri, Name: uri}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, Text: "text"}}}, nil
		})
	}
	m.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			s.mu.Lock()
			s.received[method]++
			s.mu.Unlock()
			if method == "initialize" {
				s.note("initialize")
			}
			return next(ctx, method, req)
		}
	})
	return m
}

// note appends a line to the record, which outlives the process.
func (s *server) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil {
		return
	}
	if _, err := fmt.Fprintln(s.record, line); err != nil {
		log.Fatal(err)
	}
}

// seen counts requests, and notes those that end a session.
func (s *server) seen(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.received[r.Method]++
		s.mu.Unlock()
		if r.Method == http.MethodDelete {
			s.note("DELETE")
		}
		next.ServeHTTP(w, r)
	})
}
