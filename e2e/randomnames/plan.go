package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/signalbox-mcp/signalbox/e2e/modern"
)

// fixture is what both eras serve.
type fixture struct {
	name    string
	barrier string
	apart   bool // questions go to the session's own stream
}

// second is at the end of the name of a second tool, which is like the first.
const second = "-2"

// job is what one request asks for.
type job struct {
	name, tag string
	plan      []step
}

// step is some questions that are asked at once, or one word for anything else.
type step []string

var (
	questionKinds = []string{"elicitation", "url", "sampling", "roots"}
	otherKinds    = []string{
		"barrier",      // say the tag to the barrier, wait until it lets go; among questions too
		"progress",     // one notification
		"log",          // one message at level warning
		"list-changed", // of the tools
		"updated",      // of the resource NAME://TAG
		"crash",        // exit with status 3
	}
)

// parsePlan reads steps that are separated by commas, and within them questions by plus
// signs: elicitation+sampling,barrier,roots. The empty plan answers at once. A server of
// the handshake era asks elicitation+barrier+roots in two parts, and waits for no answer
// before the barrier.
func parsePlan(text string) ([]step, error) {
	var plan []step
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		s := step(strings.Split(part, "+"))
		for _, kind := range s {
			alone := len(s) == 1 && slices.Contains(otherKinds, kind)
			if !alone && kind != "barrier" && !slices.Contains(questionKinds, kind) {
				return nil, fmt.Errorf("plan %q: what is %q", text, kind)
			}
		}
		plan = append(plan, s)
	}
	return plan, nil
}

func (s step) asks() bool { return slices.Contains(questionKinds, s[0]) }

// questions are those of the step at this place in a plan; the place of a barrier is
// empty. Each text names the tag, the step and its own place, counted from 1; roots/list
// has no text.
func (s step) questions(tag string, at int) []modern.Question {
	all := make([]modern.Question, len(s))
	for i, kind := range s {
		text := fmt.Sprintf("%s %d.%d", tag, at+1, i+1)
		switch kind {
		case "elicitation":
			all[i] = modern.Elicit(text, modern.Object(map[string]string{"answer": "string"}))
		case "url":
			all[i] = modern.Question{Method: "elicitation/create", Params: map[string]any{"mode": "url", "message": text, "url": "https://example.com/" + url.PathEscape(text)}}
		case "sampling":
			all[i] = modern.Sample(text)
		case "roots":
			all[i] = modern.Roots()
		}
	}
	return all
}

// answer is what a request gets in the end.
type answer struct {
	Tag     string            `json:"tag"`
	Name    string            `json:"name"`
	PID     int               `json:"pid"`
	Answers []json.RawMessage `json:"answers"` // as they came, in the order of the questions
}

func newAnswer(j job, answers []json.RawMessage) answer {
	return answer{Tag: j.tag, Name: j.name, PID: os.Getpid(), Answers: answers}
}

// result is an answer in the shape of the method's results.
func (f *fixture) result(method, uri string, a answer) map[string]any {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err) // it is made of JSON
	}
	part := map[string]any{"type": "text", "text": string(b)}
	switch method {
	case "prompts/get":
		return map[string]any{"messages": []any{map[string]any{"role": "user", "content": part}}}
	case "resources/read":
		return map[string]any{"contents": []any{map[string]any{"uri": uri, "text": string(b)}}}
	}
	return map[string]any{"content": []any{part}, "structuredContent": a}
}

// list is the result of a method that lists, nil for any other.
func (f *fixture) list(method string) map[string]any {
	switch method {
	case "tools/list":
		schema := modern.Object(map[string]string{"tag": "string", "plan": "string"})
		tool := func(name string) any { return map[string]any{"name": name, "inputSchema": schema} }
		return map[string]any{"tools": []any{tool(f.name), tool(f.name + second)}}
	case "prompts/list":
		argument := func(name string) any { return map[string]any{"name": name} }
		return map[string]any{"prompts": []any{map[string]any{"name": f.name, "arguments": []any{argument("tag"), argument("plan")}}}}
	case "resources/list":
		return map[string]any{"resources": []any{}}
	case "resources/templates/list":
		return map[string]any{"resourceTemplates": []any{map[string]any{"name": f.name, "uriTemplate": f.name + "://{tag}/{plan}"}}}
	}
	return nil
}

func (f *fixture) capabilities() map[string]any {
	changes := map[string]bool{"listChanged": true}
	return map[string]any{
		"tools": changes, "prompts": changes, "logging": struct{}{},
		"resources": map[string]bool{"listChanged": true, "subscribe": true},
	}
}

var errNoJob = errors.New("nothing here has that name")

// job reads what a request asks for.
func (f *fixture) job(method, name, uri string, arguments json.RawMessage) (job, error) {
	var args struct{ Tag, Plan string }
	if method == "resources/read" {
		rest, ok := strings.CutPrefix(uri, f.name+"://")
		if !ok {
			return job{}, errNoJob
		}
		args.Tag, args.Plan, _ = strings.Cut(rest, "/")
	} else {
		if name != f.name && (name != f.name+second || method != "tools/call") {
			return job{}, errNoJob
		}
		if err := json.Unmarshal(arguments, &args); err != nil {
			return job{}, err
		}
	}
	plan, err := parsePlan(args.Plan)
	return job{cmp.Or(name, f.name), args.Tag, plan}, err
}

// wait tells the barrier who has come, and returns when the other side writes a line or
// hangs up, or ctx ends; the other side sees the connection end.
func (f *fixture) wait(ctx context.Context, tag string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", f.barrier)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := fmt.Fprintln(conn, tag); err != nil {
		return err
	}
	_, err = bufio.NewReader(conn).ReadString('\n')
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
