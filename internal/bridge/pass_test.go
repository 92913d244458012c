package bridge

import (
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const ask = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1},` + meta + `}}`

func retry(stateToken string) string {
	return strings.Replace(ask, `"arguments"`, `"requestState":`+stateToken+`,"inputResponses":{"k":{"action":"accept"}},"arguments"`, 1)
}

// tokenIn is the raw requestState of a result.
func tokenIn(t *testing.T, reply string) string {
	t.Helper()
	span, ok := wire.Lookup([]byte(reply), "result", "requestState")
	if !ok {
		t.Fatalf("no requestState in %s", reply)
	}
	return string(span.Of([]byte(reply)))
}

// A server's requestState is sealed for the one who got it, and comes back to the
// server byte for byte, or not at all where it gave none.
func TestRequestStateIsWrapped(t *testing.T) {
	for _, own := range []string{`"opaque \u0041 state"`, `""`, "-"} {
		inBubble(t, Modern, func(t *testing.T, r *rig) {
			r.own.reply = func(req upstream.Request) []byte {
				result := `{"inputRequests":{"k":{"method":"elicitation/create","params":{"n":1.0}}},"requestState":` + own + `,"resultType":"input_required"}`
				if own == "-" {
					result = `{"inputRequests":{"k":{"method":"elicitation/create","params":{"n":1.0}}},"resultType":"input_required"}`
				}
				return wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(result))
			}
			b, err := r.ask(t, ask)
			if err != nil {
				t.Fatal(err)
			}
			token := tokenIn(t, b.reply)
			if strings.Contains(b.reply, "opaque") || !strings.Contains(b.reply, `{"n":1.0}`) {
				t.Errorf("the client got %s", b.reply)
			}
			if _, err := r.ask(t, retry(token)); err != nil {
				t.Fatal(err)
			}
			got := r.own.got()[1]
			want := retry(own)
			if own == "-" {
				want = strings.Replace(ask, `"arguments"`, `"inputResponses":{"k":{"action":"accept"}},"arguments"`, 1)
			}
			if got != want {
				t.Errorf("the server got\n%s, want\n%s", got, want)
			}
			if r.own.at[0] != "" || r.own.at[1] != "http://a:1" {
				t.Errorf("asked at %q", r.own.at)
			}
			for name, other := range map[string]string{
				"other arguments": strings.Replace(retry(token), `"a":1`, `"a":2`, 1),
				"other tool":      strings.Replace(retry(token), `"name":"t"`, `"name":"u"`, 1),
				"cut":             retry(token[:len(token)-3] + `"`),
				"the server's":    retry(`"opaque"`),
				"a number":        retry(`5`),
				"other letters":   strings.Replace(retry(`"opaque"`), "requestState", "RequestState", 1),
			} {
				if _, err := r.ask(t, other); err != state.ErrState {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := r.ask(t, retry(token), "bob"); err != state.ErrState {
				t.Errorf("another principal: %v", err)
			}
			if n := len(r.own.got()); n != 2 {
				t.Errorf("the server was asked %d times", n)
			}
		})
	}
}

// Everything else passes as it is.
func TestPassesByteForByte(t *testing.T) {
	inBubble(t, Modern, func(t *testing.T, r *rig) {
		result := `{ "resultType" : "complete","content":[],"n":9007199254740993,"requestState":"mine" }`
		r.own.reply = func(req upstream.Request) []byte {
			return wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(result))
		}
		b, _ := r.ask(t, ask)
		if !strings.HasSuffix(b.reply, result+"}") {
			t.Errorf("got %s", b.reply)
		}
		if got := r.own.got()[0]; got != ask {
			t.Errorf("the server got %s", got)
		}
	})
}

// Names of tasks are sealed, too, and always the same.
func TestTaskNames(t *testing.T) {
	inBubble(t, Modern, func(t *testing.T, r *rig) {
		r.own.reply = func(req upstream.Request) []byte {
			result := `{"resultType":"complete","taskId":"task-1","status":"working"}`
			if req.Method.String() == "tools/call" {
				result = `{"resultType":"task","taskId":"task-1","status":"working"}`
			}
			return wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(result))
		}
		name := func(b *box) string {
			span, _ := wire.Lookup([]byte(b.reply), "result", "taskId")
			return string(span.Of([]byte(b.reply)))
		}
		get := func(id string) string {
			return `{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":` + id + `,` + meta + `}}`
		}
		b, _ := r.ask(t, ask)
		id := name(b)
		if strings.Contains(id, "task-1") || id == "" {
			t.Fatalf("the client got %s", b.reply)
		}
		b, err := r.ask(t, get(id))
		if err != nil || name(b) != id {
			t.Errorf("%v %s, want the name %s", err, b.reply, id)
		}
		if got := r.own.got()[1]; got != get(`"task-1"`) {
			t.Errorf("the server got %s", got)
		}
		if _, err := r.ask(t, get(id), "bob"); err != errTask {
			t.Errorf("another principal: %v", err)
		}
		if _, err := r.ask(t, get(`"task-1"`)); err != errTask {
			t.Errorf("the server's own name: %v", err)
		}
		listen := `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"taskIds":[` + id + `]},` + meta + `}}`
		if _, err := r.ask(t, listen); err != nil {
			t.Error(err)
		}
		if got := r.own.got()[2]; !strings.Contains(got, `["task-1"]`) {
			t.Errorf("the server got %s", got)
		}
		for _, notifications := range []string{
			`"notifications":{"taskIds":[` + id + `],"taskIds":["task-2"]}`,
			`"notifications":{"TaskIds":["task-2"]}`,
			`"notifications":{"taskIds":[` + id + `]},"notifications":{"taskIds":["task-2"]}`,
			`"notifications":{},"Notifications":{"taskIds":["task-2"]}`,
			`"notifications":{"taskIds":"task-2"}`,
			`"notifications":["task-2"]`,
		} {
			listen := `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{` + notifications + `,` + meta + `}}`
			if _, err := r.ask(t, listen); err == nil {
				t.Errorf("%s: the server got %s", notifications, r.own.got())
			}
		}
	})
}

// The versions that clients may speak are the same wherever they are listed.
func TestDiscoverListsWhatIsSpokenHere(t *testing.T) {
	inBubble(t, Modern, func(t *testing.T, r *rig) {
		r.own.reply = func(req upstream.Request) []byte {
			return wire.AppendResult(nil, req.Msg.Bytes(req.Msg.ID), []byte(`{"supportedVersions": ["2026-07-28"] ,"x":1.0}`))
		}
		b, err := r.ask(t, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`)
		if want := `{"supportedVersions": ` + mcp.SupportedVersions + ` ,"x":1.0}`; err != nil || !strings.Contains(b.reply, want) {
			t.Errorf("%v %s", err, b.reply)
		}
	})
}
