//lint:file-ignore SA1019 Sampling, roots and logging are deprecated as of 2026-07-28; here is a server of the revisions before.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type toolFunc func(ctx context.Context, s *server, req *mcp.CallToolRequest, args arguments) (any, error)

// arguments are those of any tool.
type arguments struct {
	N, MS                        int
	Key, Tag, Method, Level, URI string
	Data                         any
}

// tools has every tool by name. Each answers by structuredContent.
var tools = map[string]toolFunc{
	"echo":     echo,     // answers its arguments
	"tag":      tag,      // {tag, ms}: notes the tag in the record, and after so long answers {tag, server}
	"progress": progress, // {n, ms}: n notifications of progress, ms apart, if there is a token; answers its arguments
	"hold":     hold,     // {key}: one notification of progress; answers its arguments when the key is released
	"release":  release,  // {key}: lets the calls go that hold the key, now and later
	"ask":      ask,      // {method}: asks the client; answers {result}
	"log":      sendLog,  // {level, data}: sends a log message
	"updated":  updated,  // {uri}: says to who subscribed that a resource has changed
	"stats":    stats,    // answers {received: {method: count}, running}
}

func (s *server) tool(name string, run toolFunc) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.count(1)
		defer s.count(-1)
		var args arguments
		if len(req.Params.Arguments) > 0 {
			if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		answer, err := run(ctx, s, req, args)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return &mcp.CallToolResult{
			Content:           []mcp.Content{&mcp.TextContent{Text: "see structuredContent"}},
			StructuredContent: answer,
		}, nil
	}
}

func (s *server) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += n
}

func (s *server) gate(key string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[key] == nil {
		s.gates[key] = make(chan struct{})
	}
	return s.gates[key]
}

// wait returns early, with an error, when the call is cancelled.
func wait(ctx context.Context, ms int) error {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func echo(_ context.Context, _ *server, req *mcp.CallToolRequest, _ arguments) (any, error) {
	return req.Params.Arguments, nil
}

func tag(ctx context.Context, s *server, _ *mcp.CallToolRequest, args arguments) (any, error) {
	s.note("tag " + args.Tag)
	return map[string]any{"tag": args.Tag, "server": s.name}, wait(ctx, args.MS)
}

func progress(ctx context.Context, _ *server, req *mcp.CallToolRequest, args arguments) (any, error) {
	for i := range args.N {
		if err := wait(ctx, args.MS); err != nil {
			return nil, err
		}
		report(ctx, req, i+1, args.N)
	}
	return req.Params.Arguments, nil
}

// report sends the arguments along, so that a client can tell whose it is. The SDK
// refuses to where there is neither an event stream nor a session, which is not the
// call's fault.
func report(ctx context.Context, req *mcp.CallToolRequest, done, total int) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: float64(done), Total: float64(total), Message: string(req.Params.Arguments),
	})
}

func hold(ctx context.Context, s *server, req *mcp.CallToolRequest, args arguments) (any, error) {
	report(ctx, req, 1, 1)
	select {
	case <-s.gate(args.Key):
		return req.Params.Arguments, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func release(_ context.Context, s *server, _ *mcp.CallToolRequest, args arguments) (any, error) {
	close(s.gate(args.Key)) // once for each key
	return map[string]any{}, nil
}

func ask(ctx context.Context, _ *server, req *mcp.CallToolRequest, args arguments) (any, error) {
	var result any
	var err error
	switch args.Method {
	case "roots/list":
		result, err = req.Session.ListRoots(ctx, nil)
	case "elicitation/create":
		result, err = req.Session.Elicit(ctx, &mcp.ElicitParams{
			Message: "Who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
		})
	case "sampling/createMessage":
		result, err = req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
			MaxTokens: 10, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hello"}}},
		})
	default:
		err = fmt.Errorf("no question is called %q", args.Method)
	}
	return map[string]any{"result": result}, err
}

func sendLog(ctx context.Context, _ *server, req *mcp.CallToolRequest, args arguments) (any, error) {
	return map[string]any{}, req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(args.Level), Logger: "sdkserver", Data: args.Data})
}

func updated(ctx context.Context, s *server, _ *mcp.CallToolRequest, args arguments) (any, error) {
	return map[string]any{}, s.mcp.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: args.URI})
}

func stats(_ context.Context, s *server, _ *mcp.CallToolRequest, _ arguments) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{"received": maps.Clone(s.received), "running": s.running}, nil
}
