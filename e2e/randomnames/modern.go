package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/signalbox-mcp/signalbox/e2e/modern"
)

func newModern(f *fixture) *modern.Server {
	s := &modern.Server{Name: "randomnames", Capabilities: f.capabilities(), Handlers: make(map[string]modern.Handler)}
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		s.Handlers[method] = func(context.Context, *modern.Call) (modern.Result, error) { return f.list(method), nil }
	}
	for _, method := range []string{"tools/call", "prompts/get", "resources/read"} {
		s.Handlers[method] = func(ctx context.Context, c *modern.Call) (modern.Result, error) { return f.runModern(ctx, s, c) }
	}
	return s
}

// progress is how far a request has come, in its requestState.
type progress struct {
	Tag     string
	Step    int               // the next one; it asked, if there is a state
	Asked   bool              // the questions of Step are out
	Answers []json.RawMessage // to the steps before
	Partial map[string]json.RawMessage
}

// runModern does the steps of a plan up to the next question.
func (f *fixture) runModern(ctx context.Context, s *modern.Server, c *modern.Call) (modern.Result, error) {
	j, err := f.job(c.Method, c.Params.Name, c.Params.URI, c.Params.Arguments)
	if err != nil {
		return nil, modern.InvalidParams("%v", err)
	}
	var p progress
	ok, err := c.Open(&p)
	if err != nil {
		return nil, err
	}
	if ok && p.Tag != j.tag {
		return nil, modern.InvalidParams("a requestState of %s", p.Tag)
	}
	p.Tag = j.tag
	for ; p.Step < len(j.plan); p.Step++ {
		step := j.plan[p.Step]
		if !step.asks() {
			if err := f.other(ctx, s, c, j, step[0]); err != nil {
				return nil, err
			}
			continue
		}
		open, err := f.collect(ctx, &p, step, c)
		if err != nil {
			return nil, err
		}
		if len(open) > 0 {
			return modern.InputRequired(open, modern.Seal(p)), nil
		}
	}
	return f.result(c.Method, c.Params.URI, newAnswer(j, p.Answers)), nil
}

// collect takes the answers to a step, and returns the questions that are open.
func (f *fixture) collect(ctx context.Context, p *progress, s step, c *modern.Call) (map[string]modern.Question, error) {
	if p.Partial == nil {
		p.Partial = make(map[string]json.RawMessage)
	}
	open := make(map[string]modern.Question)
	var answers []json.RawMessage
	for i, q := range s.questions(p.Tag, p.Step) {
		if s[i] == "barrier" {
			if p.Asked {
				continue
			}
			if err := f.wait(ctx, p.Tag); err != nil {
				return nil, err
			}
			continue
		}
		key := fmt.Sprintf("%s-%d-%d", f.name, p.Step+1, i+1)
		if raw, ok := c.Params.InputResponses[key]; ok && p.Asked {
			p.Partial[key] = raw
		}
		if _, ok := p.Partial[key]; !ok {
			open[key] = q
		}
		answers = append(answers, p.Partial[key])
	}
	p.Asked = len(open) > 0
	if p.Asked {
		return open, nil
	}
	p.Answers, p.Partial = append(p.Answers, answers...), nil
	return nil, nil
}

// other does what is no question.
func (f *fixture) other(ctx context.Context, s *modern.Server, c *modern.Call, j job, kind string) error {
	switch kind {
	case "barrier":
		return f.wait(ctx, j.tag)
	case "progress":
		c.Progress(1, 2, j.tag)
	case "log":
		c.Log("warning", j.tag)
	case "list-changed":
		s.ToolsChanged()
	case "updated":
		s.ResourceUpdated(f.name + "://" + j.tag)
	case "crash":
		os.Exit(3)
	}
	return nil
}
