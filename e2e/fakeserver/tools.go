package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// toolCall is the params of a tools/call.
type toolCall struct {
	Name      string
	Arguments json.RawMessage
	Meta      struct{ ProgressToken json.RawMessage } `json:"_meta"`

	params json.RawMessage // all of it, as received
}

// read decodes the arguments.
func (c toolCall) read(into any) error { return json.Unmarshal(c.Arguments, into) }

type tool struct {
	help string
	run  func(context.Context, *server, toolCall) (answer, error)
}

// toolTable has every tool by name. Each answers by structuredContent, an object, beside
// one short text.
var toolTable = map[string]tool{
	"echo":     {"answers its arguments, byte for byte", echo},
	"delay":    {"{ms, value}: answers its arguments after so long", delay},
	"progress": {"{n, ms}: n notifications of progress, ms apart, if there is a token; answers its arguments", progress},
	"hold":     {"{key}: one notification of progress; answers its arguments when the key is released", hold},
	"release":  {"{key}: lets every call go that holds the key, now and later", release},
	"ask":      {"{method, params}: sends the client a request; answers {result} or {error}", ask},
	"set":      {"{key, value}: keeps a value in the process", set},
	"get":      {"{key}: answers {value}", get},
	"log":      {"{level, data}: sends a log message", sendLog},
	"notify":   {"{method, params}: sends a notification, whatever it says", notify},
	"updated":  {"{uri}: says that a resource has changed, subscribed or not; answers {subscribed}", updated},
	"hash":     {"answers {sha256, bytes} of the params as they came", hash},
	"big":      {"{bytes, idLast}: answers a text of so many bytes, with the id behind it if told", big},
	"stderr":   {"{bytes}: floods stderr with lines", floodStderr},
	"stats":    {"answers {pid, received: {method: count}, running}", stats},
	"env":      {"{name}: answers {value}, null if it is not set", env},
	"crash":    {"{code}: exits without an answer", crash},
}

// structured is an answer with the given object, in its own bytes.
func structured(object json.RawMessage) answer {
	return answer{result: json.RawMessage(`{"content":[{"type":"text","text":"see structuredContent"}],"structuredContent":` + string(object) + `}`)}
}

// encoded is an answer with the given object.
func encoded(object map[string]any) (answer, error) {
	b, err := json.Marshal(object)
	return structured(b), err
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

func echo(_ context.Context, _ *server, c toolCall) (answer, error) {
	return structured(c.Arguments), nil
}

func delay(ctx context.Context, _ *server, c toolCall) (answer, error) {
	var args struct{ MS int }
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	return structured(c.Arguments), wait(ctx, args.MS)
}

func progress(ctx context.Context, s *server, c toolCall) (answer, error) {
	var args struct{ N, MS int }
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	for i := range args.N {
		if err := wait(ctx, args.MS); err != nil {
			return answer{}, err
		}
		c.reportProgress(s, i+1, args.N)
	}
	return structured(c.Arguments), nil
}

// reportProgress sends the arguments along, so that a client can tell whose it is.
func (c toolCall) reportProgress(s *server, progress, total int) {
	if c.Meta.ProgressToken == nil {
		return
	}
	s.out.request(nil, "notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"total":%d,"message":%s}`,
		c.Meta.ProgressToken, progress, total, quote(string(c.Arguments))))
}

func hold(ctx context.Context, s *server, c toolCall) (answer, error) {
	var args struct{ Key string }
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	c.reportProgress(s, 1, 1)
	select {
	case <-s.gate(args.Key):
		return structured(c.Arguments), nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

func release(_ context.Context, s *server, c toolCall) (answer, error) {
	var args struct{ Key string }
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	gate := s.gate(args.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-gate:
	default:
		close(gate)
	}
	return structured(orEmpty(nil)), nil
}

// askParams are requests that a client's SDK accepts as valid.
var askParams = map[string]json.RawMessage{
	"roots/list":         json.RawMessage(`{}`),
	"elicitation/create": json.RawMessage(`{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`),
	"sampling/createMessage": json.RawMessage(
		`{"messages":[{"role":"user","content":{"type":"text","text":"Hello"}}],"maxTokens":10}`),
}

func ask(ctx context.Context, s *server, c toolCall) (answer, error) {
	var args struct {
		Method string
		Params json.RawMessage
	}
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	if args.Params == nil {
		args.Params = askParams[args.Method]
	}
	m, err := s.ask(ctx, args.Method, args.Params)
	if err != nil {
		return answer{}, err
	}
	if m["error"] != nil {
		return structured(json.RawMessage(`{"error":` + string(m["error"]) + `}`)), nil
	}
	return structured(json.RawMessage(`{"result":` + string(m["result"]) + `}`)), nil
}

func set(_ context.Context, s *server, c toolCall) (answer, error) {
	var args struct {
		Key   string
		Value json.RawMessage
	}
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	s.mu.Lock()
	s.values[args.Key] = args.Value
	s.mu.Unlock()
	return structured(orEmpty(nil)), nil
}

func get(_ context.Context, s *server, c toolCall) (answer, error) {
	var args struct{ Key string }
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	s.mu.Lock()
	value := s.values[args.Key]
	s.mu.Unlock()
	if value == nil {
		value = json.RawMessage("null")
	}
	return structured(json.RawMessage(`{"value":` + string(value) + `}`)), nil
}

func sendLog(_ context.Context, s *server, c toolCall) (answer, error) {
	args := struct {
		Level string
		Data  json.RawMessage
	}{Level: "info", Data: json.RawMessage(`"hello"`)}
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	s.out.request(nil, "notifications/message",
		json.RawMessage(`{"level":`+string(quote(args.Level))+`,"logger":"fakeserver","data":`+string(args.Data)+`}`))
	return structured(orEmpty(nil)), nil
}

func notify(_ context.Context, s *server, c toolCall) (answer, error) {
	var args struct {
		Method string
		Params json.RawMessage
	}
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	s.out.request(nil, args.Method, args.Params)
	return structured(orEmpty(nil)), nil
}

func updated(_ context.Context, s *server, c toolCall) (answer, error) {
	var args struct{ URI string }
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	s.mu.Lock()
	subscribed := s.subscribed[args.URI]
	s.mu.Unlock()
	s.out.request(nil, "notifications/resources/updated", json.RawMessage(`{"uri":`+string(quote(args.URI))+`}`))
	return encoded(map[string]any{"subscribed": subscribed})
}

func hash(_ context.Context, _ *server, c toolCall) (answer, error) {
	sum := sha256.Sum256(c.params)
	return encoded(map[string]any{"sha256": hex.EncodeToString(sum[:]), "bytes": len(c.params)})
}

func big(_ context.Context, _ *server, c toolCall) (answer, error) {
	var args struct {
		Bytes  int
		IDLast bool
	}
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	const before, after = `{"content":[{"type":"text","text":"`, `"}]}`
	b := make([]byte, 0, len(before)+args.Bytes+len(after))
	b = append(b, before...)
	b = append(b, bytes.Repeat([]byte("x"), args.Bytes)...)
	b = append(b, after...)
	return answer{result: b, idLast: args.IDLast}, nil
}

func floodStderr(_ context.Context, _ *server, c toolCall) (answer, error) {
	var args struct{ Bytes int }
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	line := strings.Repeat("e", 99) + "\n"
	for range args.Bytes / len(line) {
		if _, err := os.Stderr.WriteString(line); err != nil {
			return answer{}, err
		}
	}
	return structured(orEmpty(nil)), nil
}

func stats(_ context.Context, s *server, _ toolCall) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return encoded(map[string]any{"pid": os.Getpid(), "received": s.received, "running": len(s.running)})
}

func env(_ context.Context, _ *server, c toolCall) (answer, error) {
	var args struct{ Name string }
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	if value, ok := os.LookupEnv(args.Name); ok {
		return encoded(map[string]any{"value": value})
	}
	return encoded(map[string]any{"value": nil})
}

func crash(_ context.Context, _ *server, c toolCall) (answer, error) {
	args := struct{ Code int }{Code: 1}
	if err := c.read(&args); err != nil {
		return answer{}, err
	}
	os.Exit(args.Code)
	panic("unreachable")
}
