package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// asker is somebody who uses the tool of a random name in the per-request era, one HTTP
// request at a time, at whichever replica.
type asker struct {
	who string // in every answer that it gives
	c   *rawclient.Client
}

// newAsker makes an asker with a key, "" where there is no authorization.
func newAsker(t testing.TB, who, key string) *asker {
	a := &asker{who: who, c: rawclient.New("")}
	if key != "" {
		a.c.Header.Set("Authorization", "Bearer "+key)
	}
	t.Cleanup(a.c.Close)
	return a
}

// at is the asker as a client of an endpoint.
func (a *asker) at(endpoint string) *rawclient.Modern {
	m := a.c.Modern()
	m.Path = endpoint
	return m
}

// toolParams are those of a call.
func toolParams(name, tag, plan string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":{"tag":%q,"plan":%q}}`, name, tag, plan)
}

// post sends a request under id 1, as everybody does.
func (a *asker) post(ctx context.Context, endpoint, method, params string) (rawclient.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, box.Patience)
	defer cancel()
	return a.at(endpoint).Call(ctx, "1", method, params)
}

// park begins a call and returns what it asks.
func (a *asker) park(ctx context.Context, endpoint, params string) (rawclient.InputRequired, error) {
	reply, err := a.post(ctx, endpoint, "tools/call", params)
	if err != nil {
		return rawclient.InputRequired{}, err
	}
	in, ok := reply.InputRequired()
	if !ok || len(in.InputRequests) == 0 || in.RequestState == nil {
		return in, fmt.Errorf("%s asks nothing: %v", params, reply)
	}
	return in, nil
}

// mustPark is park where nothing may go wrong.
func (a *asker) mustPark(t testing.TB, endpoint, params string) rawclient.InputRequired {
	t.Helper()
	in, err := a.park(t.Context(), endpoint, params)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// answer answers one question, in a way that names the asker and the question.
func (a *asker) answer(_, method string, params json.RawMessage) string {
	var q struct {
		Message  string
		Messages []struct{ Content struct{ Text string } }
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return `"` + err.Error() + `"` // no server takes that
	}
	switch method {
	case "elicitation/create":
		return fmt.Sprintf(`{"action":"accept","content":{"answer":%q}}`, a.who+" on "+q.Message)
	case "sampling/createMessage":
		return fmt.Sprintf(`{"role":"assistant","model":"none","content":{"type":"text","text":%q}}`, a.who+" on "+q.Messages[0].Content.Text)
	}
	return fmt.Sprintf(`{"roots":[{"uri":%q}]}`, "file:///"+a.who)
}

// retry comes back with the answers.
func (a *asker) retry(ctx context.Context, endpoint, params string, in rawclient.InputRequired) (rawclient.Reply, error) {
	return a.post(ctx, endpoint, "tools/call", in.Answers(params, a.answer))
}

// finish answers until there is a result, in turn at each endpoint. It returns the text
// of the result and the number of rounds.
func (a *asker) finish(ctx context.Context, params string, in rawclient.InputRequired, endpoints ...string) (text string, rounds int, err error) {
	for rounds = 1; rounds <= 10; rounds++ {
		reply, err := a.retry(ctx, endpoints[(rounds-1)%len(endpoints)], params, in)
		if err != nil {
			return "", rounds, err
		}
		next, more := reply.InputRequired()
		if more {
			in = next
			continue
		}
		text, err := resultText(reply)
		return text, rounds, err
	}
	return "", rounds, fmt.Errorf("%s asks without end", params)
}

// resultText is the text of a tool's result.
func resultText(reply rawclient.Reply) (string, error) {
	var result struct{ Content []struct{ Text string } }
	if reply.Response.Result == nil {
		return "", fmt.Errorf("no result: %v", reply)
	}
	if err := json.Unmarshal(reply.Response.Result, &result); err != nil || len(result.Content) != 1 {
		return "", fmt.Errorf("result %s: %v", reply.Response.Result, err)
	}
	return result.Content[0].Text, nil
}

// mustFinish is finish where nothing may go wrong.
func (a *asker) mustFinish(t testing.TB, name, tag, plan string, in rawclient.InputRequired, endpoints ...string) (rounds int) {
	t.Helper()
	text, rounds, err := a.finish(t.Context(), toolParams(name, tag, plan), in, endpoints...)
	if err != nil {
		t.Errorf("%s: %v", a.who, err)
		return rounds
	}
	checkPlanned(t, text, a.who, name, tag, plan)
	return rounds
}

// notAnswered is the error of a call that must not be answered.
func notAnswered(reply rawclient.Reply, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("answered: %v", reply)
}
