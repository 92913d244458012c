package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

// callParams are those of the three methods that have a plan.
type callParams struct {
	Name, URI string
	Arguments json.RawMessage
	Meta      struct{ ProgressToken json.RawMessage } `json:"_meta"`
}

func (s *legacySession) call(ctx context.Context, m message, reply sender) {
	answer := s.run(ctx, m, reply)
	s.mu.Lock()
	delete(s.running, string(m.ID))
	s.mu.Unlock()
	if ctx.Err() == nil {
		reply(answer)
	}
}

// run does all steps of a plan.
func (s *legacySession) run(ctx context.Context, m message, reply sender) message {
	var params callParams
	if err := json.Unmarshal(m.Params, &params); err != nil {
		return refuse(m, -32602, err.Error())
	}
	j, err := s.f.job(m.Method, params.Name, params.URI, params.Arguments)
	if err != nil {
		return refuse(m, -32602, err.Error())
	}
	var answers []json.RawMessage
	for i, step := range j.plan {
		if !step.asks() {
			err = s.other(ctx, j, step[0], params, reply)
		} else {
			var more []json.RawMessage
			more, err = s.ask(ctx, j.tag, i, step, reply)
			answers = append(answers, more...)
		}
		if err != nil {
			return refuse(m, -32603, err.Error())
		}
	}
	return message{ID: m.ID, Result: encodeAny(s.f.result(m.Method, params.URI, newAnswer(j, answers)))}
}

// ask sends the questions of a step, all before it waits for the first answer. An error
// of the client is an answer {error}.
func (s *legacySession) ask(ctx context.Context, tag string, at int, st step, reply sender) ([]json.RawMessage, error) {
	if s.f.apart {
		reply = s.own
	}
	var waiting []chan message
	for i, q := range st.questions(tag, at) {
		if st[i] == "barrier" {
			if err := s.f.wait(ctx, tag); err != nil {
				return nil, err
			}
			continue
		}
		if st[i] == "url" {
			q.Params["elicitationId"] = fmt.Sprintf("%s-%d-%d", tag, at, i)
		}
		c := make(chan message, 1)
		waiting = append(waiting, c)
		s.mu.Lock()
		s.lastAsked++
		id := strconv.Itoa(s.lastAsked)
		s.asked[id] = c
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.asked, id)
		}()
		reply(message{ID: json.RawMessage(id), Method: q.Method, Params: encodeAny(q.Params)})
	}
	var answers []json.RawMessage
	for _, c := range waiting {
		select {
		case m := <-c:
			if m.Error != nil {
				m.Result = encodeAny(map[string]any{"error": m.Error})
			}
			answers = append(answers, m.Result)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return answers, nil
}

// other does what is no question.
func (s *legacySession) other(ctx context.Context, j job, kind string, params callParams, reply sender) error {
	uri := s.f.name + "://" + j.tag
	s.mu.Lock()
	level, subscribed := s.level, s.subscribed[uri]
	s.mu.Unlock()
	notify := func(to sender, method string, params any) { to(message{Method: method, Params: encodeAny(params)}) }
	switch kind {
	case "barrier":
		return s.f.wait(ctx, j.tag)
	case "progress":
		if params.Meta.ProgressToken != nil {
			notify(reply, "notifications/progress", map[string]any{"progressToken": params.Meta.ProgressToken, "progress": 1, "total": 2, "message": j.tag})
		}
	case "log":
		if level != "" {
			notify(reply, "notifications/message", map[string]any{"level": "warning", "data": j.tag})
		}
	case "list-changed":
		notify(s.own, "notifications/tools/list_changed", struct{}{})
	case "updated":
		if subscribed {
			notify(s.own, "notifications/resources/updated", map[string]string{"uri": uri})
		}
	case "crash":
		os.Exit(3)
	}
	return nil
}
