package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/cluster"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// request does one thing that clients do, and checks what comes of it.
func (w *chaosClient) request() {
	begun := time.Now()
	a, wrong := cluster.Answer{}, ""
	what := ""
	switch n := w.random.IntN(100); {
	case w.sse != nil:
		a, wrong = w.overSSE()
	case n < 55 || n < 90 && w.kind.server == cluster.Shared:
		a = w.call("echo", "")
		wrong = w.mcp.Echoed(a)
	case n < 65:
		a = w.call("progress", `"n":3,"ms":20`)
		wrong = w.mcp.Echoed(a)
	case n < 75:
		a = w.call("delay", fmt.Sprintf(`"ms":%d`, w.random.IntN(500)))
		wrong = w.mcp.Echoed(a)
	case n < 85:
		what = resuming
		a, wrong = w.resume()
	case n < 90:
		what = "ask: "
		a, wrong = w.answer()
	case n < 95 && w.kind.server == cluster.Private:
		a = w.call("get", `"key":"owner"`)
		wrong = w.owned(a)
	case n < 97:
		w.mcp.Delete(w.base)
		w.forget()
		return
	default:
		a = w.call("echo", "")
		wrong = w.mcp.Echoed(a)
	}
	switch {
	case wrong == "":
		w.note(w.kind, "ok", "", time.Since(begun))
	case strings.HasPrefix(wrong, "WRONG"):
		w.note(w.kind, "WRONG", wrong, time.Since(begun))
	case w.judge(what, a, begun):
		w.forget()
	}
}

func (w *chaosClient) call(tool, arguments string) cluster.Answer {
	return w.mcp.Call(w.base, tool, arguments)
}

// owned asks the session's own process whose it is.
func (w *chaosClient) owned(a cluster.Answer) string {
	switch {
	case a.Err != nil || a.Status != http.StatusOK || a.Reason() != "":
		return a.String()
	case !strings.Contains(a.Body, `{"value":"`+w.mcp.Owner+`"}`) && !strings.Contains(a.Body, `{"value":null}`): // the set may have failed
		return "WRONG process: " + a.String()
	}
	return ""
}

// resume breaks a stream off after its first event, and fetches the rest.
func (w *chaosClient) resume() (cluster.Answer, string) {
	tag := cluster.Tag()
	stream, a := w.mcp.TryStream(http.MethodPost, w.base, tag, "", cluster.CallBody(tag, "progress", w.mcp.Owner, tag, `"n":4,"ms":50`))
	if stream == nil {
		return a, a.String()
	}
	first, err := stream.Next(limit)
	stream.Close()
	if err == nil && first.ID == "" {
		err = errors.New("an event without an id")
	}
	if err != nil {
		return cluster.Answer{Err: err}, err.Error()
	}
	rest, a := w.mcp.TryStream(http.MethodGet, w.base, tag+"-rest", first.ID, "")
	if rest == nil {
		return a, a.String()
	}
	defer rest.Close()
	return w.rest(rest, tag)
}

// rest reads a stream to its end, with the answer to tag.
func (w *chaosClient) rest(stream *cluster.Events, tag string) (cluster.Answer, string) {
	a := cluster.Answer{Status: http.StatusOK, Tag: tag}
	for {
		e, err := stream.Next(limit)
		if err == io.EOF {
			return a, w.mcp.Echoed(a)
		}
		if err != nil {
			a.Err = err
			return a, err.Error()
		}
		if e.Data != "" {
			a.Body += "data: " + e.Data + "\n"
		}
	}
}

// answer answers a question that the server asks in the course of a call.
func (w *chaosClient) answer() (cluster.Answer, string) {
	tag := cluster.Tag()
	stream, a := w.mcp.TryStream(http.MethodPost, w.base, tag, "", cluster.CallBody(tag, "ask", w.mcp.Owner, tag, `"method":"roots/list"`))
	if stream == nil {
		return a, a.String()
	}
	defer stream.Close()
	question, err := stream.Find(`"`, limit)
	if err != nil {
		return cluster.Answer{Err: err}, err.Error()
	}
	m, err := rawclient.ParseMessage([]byte(question.Data))
	if err != nil || m.Method != "roots/list" {
		return cluster.Answer{Status: http.StatusOK, Body: question.Data}, "no question: " + question.Data
	}
	a = w.mcp.Post(w.base, cluster.Tag(), `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"roots":[],"answer":"`+tag+`"}}`)
	if a.Status != http.StatusAccepted {
		return a, a.String() // the call itself ends when the stream is given up, or by itself
	}
	result, err := stream.Find(`"id":"`+tag+`"`, limit)
	switch {
	case err != nil:
		return cluster.Answer{Err: err}, err.Error()
	case strings.Contains(result.Data, `"error"`):
		return cluster.Answer{Status: http.StatusOK, Body: result.Data}, result.Data
	case !strings.Contains(result.Data, `"answer":"`+tag+`"`):
		return cluster.Answer{}, "WRONG answer to a question: " + result.Data
	}
	return cluster.Answer{}, ""
}

// overSSE calls in a session of the older transport.
func (w *chaosClient) overSSE() (cluster.Answer, string) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tag := cluster.Tag()
	m, err := w.sse.Call(ctx, `"`+tag+`"`, "tools/call", `{"name":"echo","arguments":{"owner":"`+w.owner+`","tag":"`+tag+`"}}`)
	if err != nil {
		a := answerOf(err)
		return a, err.Error()
	}
	a := cluster.Answer{Status: http.StatusOK, Body: string(m.Raw)}
	return a, cluster.CheckText(w.owner, tag, a.Body)
}
