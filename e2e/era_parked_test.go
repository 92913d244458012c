package e2e

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// TestEraAskers has a client that does nothing but what it is told use servers of the
// per-request era without Signalbox, to know that it is right itself.
func TestEraAskers(t *testing.T) {
	name := randomName()
	barrier := newBarrier(t)
	endpoint := randomNamesHTTP(t, "modern", name, "-barrier", barrier.addr).url()
	ada := newAsker(t, "ada", "")
	plan := "elicitation+sampling,roots,elicitation"
	in := ada.mustPark(t, endpoint, toolParams(name, "t", plan))
	if rounds := ada.mustFinish(t, name, "t", plan, in, endpoint); rounds != 3 {
		t.Errorf("%d rounds, want 3", rounds)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		reply, err := ada.post(ctx, endpoint, "tools/call", toolParams(name, "gone", "barrier"))
		ended <- notAnswered(reply, err)
	}()
	call := barrier.awaitOr(t, "gone", ended)
	cancel()
	call.awaitGone(t)
	if err := receive(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call ended with %v", err)
	}
}

// TestEraParkedLateQuestion has a server ask a second question while its call is parked
// and no HTTP request is open.
func TestEraParkedLateQuestion(t *testing.T) {
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			barrier := newBarrier(t)
			b, name := startRandomNames(t, "legacy", transport, "-barrier", barrier.addr)
			ada, endpoint := newAsker(t, "ada", ""), b.URL+"/mcp"
			plan := "elicitation+barrier+sampling,roots"
			in := ada.mustPark(t, endpoint, toolParams(name, "late", plan))
			if n := len(in.InputRequests); n != 1 {
				t.Errorf("%d questions at first, want the one before the barrier", n)
			}
			barrier.await(t, "late").release(t)
			if rounds := ada.mustFinish(t, name, "late", plan, in, endpoint); rounds != 3 {
				t.Errorf("answered in %d rounds, want 3", rounds)
			}
		})
	}
}

// TestEraParkedSeveral has one principal's calls ask at the same time, also such as
// cannot be told apart but by their state. They are answered in the opposite order.
func TestEraParkedSeveral(t *testing.T) {
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			b, name := startRandomNames(t, "legacy", transport)
			endpoint, plan := b.URL+"/mcp", "elicitation,sampling+roots"
			var finish []func()
			for _, who := range []string{"ada", "ben", "cleo", "dan"} { // on loopback they are the same
				a := newAsker(t, who, "")
				tag := map[bool]string{true: "one", false: "other"}[who < "c"]
				in := a.mustPark(t, endpoint, toolParams(name, tag, plan))
				finish = append(finish, func() { a.mustFinish(t, name, tag, plan, in, endpoint) })
			}
			b.EventuallyMetric(t, box.MetricParked, 4)
			for i := len(finish) - 1; i >= 0; i-- {
				finish[i]()
			}
			b.EventuallyMetric(t, box.MetricParked, 0)
			b.EventuallyMetric(t, box.MetricCallsInFlight, 0)
		})
	}
}

// TestEraParkedMissingAnswers answers one of two questions at a time, with answers to
// questions that nobody asked among them.
func TestEraParkedMissingAnswers(t *testing.T) {
	b, name := startRandomNames(t, "legacy", "stdio")
	ada, endpoint := newAsker(t, "ada", ""), b.URL+"/mcp"
	plan := "elicitation+sampling"
	params := toolParams(name, "t", plan)
	in := ada.mustPark(t, endpoint, params)
	if len(in.InputRequests) != 2 {
		t.Fatalf("asked %v", in.InputRequests)
	}
	for key, q := range in.InputRequests {
		if q.Method == "sampling/createMessage" {
			delete(in.InputRequests, key)
		}
	}
	answers := in.Answers(params, ada.answer)
	answers = strings.Replace(answers, `"inputResponses":{`, `"inputResponses":{"nobody-asked":{"action":"decline"},`, 1)
	reply, err := ada.post(t.Context(), endpoint, "tools/call", answers)
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := reply.InputRequired()
	if !ok || len(rest.InputRequests) != 1 {
		t.Fatalf("after one answer of two: %v", reply)
	}
	ada.mustFinish(t, name, "t", plan, rest, endpoint)
}

// TestEraParkedProcessDies ends the process of a call that is parked, or that goes on.
func TestEraParkedProcessDies(t *testing.T) {
	box.NeedProc(t)
	t.Run("while parked", func(t *testing.T) {
		b, name := startRandomNames(t, "legacy", "stdio")
		ada, endpoint := newAsker(t, "ada", ""), b.URL+"/mcp"
		params := toolParams(name, "t", "elicitation")
		in := ada.mustPark(t, endpoint, params)
		for _, p := range b.Descendants() {
			process, err := os.FindProcess(p.PID)
			if err == nil {
				err = process.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		b.EventuallyMetric(t, box.MetricProcesses, 0)
		reply, err := ada.retry(t.Context(), endpoint, params, in)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Response.Error == nil || !strings.Contains(reply.Body, "process") || !strings.Contains(reply.Body, `"source":"signalbox"`) {
			t.Errorf("the retry is told %v, which does not say that the process has ended", reply)
		}
		b.EventuallyMetric(t, box.MetricParked, 0)
		// The next call has a new process.
		in = ada.mustPark(t, endpoint, params)
		ada.mustFinish(t, name, "t", "elicitation", in, endpoint)
	})
	t.Run("after the answer", func(t *testing.T) {
		b, name := startRandomNames(t, "legacy", "stdio")
		ada, endpoint := newAsker(t, "ada", ""), b.URL+"/mcp"
		params := toolParams(name, "t", "elicitation,crash")
		reply, err := ada.retry(t.Context(), endpoint, params, ada.mustPark(t, endpoint, params))
		if err != nil {
			t.Fatal(err)
		}
		if reply.Code() != -32603 || !strings.Contains(reply.Body, "server process exited (code 3)") {
			t.Errorf("the retry is told %v", reply)
		}
		b.EventuallyMetric(t, box.MetricProcesses, 0)
	})
}
