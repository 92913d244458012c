// Command modernonly is a server of revision 2026-07-28 only, over stdio or HTTP, with
// the fixtures of the official conformance suite. It refuses initialize, and asks its
// client by input_required results only.
package main

import (
	"flag"
	"log"
	"net/http"
	"os"

	"github.com/signalbox-mcp/signalbox/e2e/modern"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("modernonly: ")
	addr := flag.String("http", "", "listen at this `address` instead of standard input")
	refusal := flag.Int("refusal", -32022, "the `code` of the error that initialize gets")
	flag.Parse()
	s := newServer()
	s.Refusal = *refusal
	if *addr != "" {
		log.Fatal(http.ListenAndServe(*addr, s))
	}
	if err := s.ServeStdio(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func newServer() *modern.Server {
	s := &modern.Server{
		Name: "modernonly",
		Capabilities: map[string]any{
			"tools": map[string]bool{"listChanged": true}, "prompts": map[string]bool{"listChanged": true},
			"resources":   map[string]bool{"listChanged": true, "subscribe": true},
			"completions": struct{}{}, "logging": struct{}{},
		},
		ParamHeaders: map[string]map[string]string{"test_x_mcp_header": {"region": "Region"}},
	}
	s.Handlers = map[string]modern.Handler{
		"tools/list":               listTools,
		"tools/call":               callTool(s),
		"prompts/list":             listPrompts,
		"prompts/get":              getPrompt,
		"resources/list":           listResources,
		"resources/templates/list": listTemplates,
		"resources/read":           readResource,
		"completion/complete":      complete,
	}
	go watch(s)
	return s
}
