package header

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

func request(t testing.TB, raw string) *upstream.Request {
	t.Helper()
	msg, err := wire.Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	req := upstream.NewRequest(msg)
	return &req
}

// headers are made of "name: value" lines.
func headers(lines ...string) http.Header {
	h := make(http.Header)
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	return h
}

// refused checks that err is one of a header, and says want.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	var e *upstream.Error
	switch {
	case want == "" && err == nil:
	case !errors.As(err, &e) || e.Code != mcp.CodeHeaderMismatch || e.Reason != "header_mismatch":
		t.Errorf("got %v, want a mismatch: %s", err, want)
	case want == "" || !strings.Contains(e.Message, want):
		t.Errorf("message %q, want %q in it", e.Message, want)
	case len(e.Message) > 1000 || strings.ContainsFunc(e.Message, func(r rune) bool { return r < ' ' || r > '~' }):
		t.Errorf("message %q is long or not printable", e.Message)
	}
}

func TestCheck(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}`
	for name, tt := range map[string]struct {
		body string
		h    http.Header
		want string
	}{
		"call":              {call, headers("Mcp-Method: tools/call", "Mcp-Name: add"), ""},
		"encoded":           {call, headers("Mcp-Method: tools/call", "Mcp-Name: =?base64?YWRk?="), ""},
		"no method":         {call, headers("Mcp-Name: add"), `Mcp-Method is missing; by the request's body it must be "tools/call"`},
		"other method":      {call, headers("Mcp-Method: tools/list", "Mcp-Name: add"), `Mcp-Method says "tools/list"; by`},
		"method in capital": {call, headers("Mcp-Method: Tools/call", "Mcp-Name: add"), "Mcp-Method says"},
		"method encoded":    {call, headers("Mcp-Method: =?base64?dG9vbHMvY2FsbA==?=", "Mcp-Name: add"), "Mcp-Method says"},
		"two methods":       {call, headers("Mcp-Method: tools/call", "Mcp-Method: tools/call", "Mcp-Name: add"), "more than once"},
		"no name":           {call, headers("Mcp-Method: tools/call"), `Mcp-Name is missing; by the request's body it must be "add"`},
		"empty name":        {call, headers("Mcp-Method: tools/call", "Mcp-Name: "), `Mcp-Name says ""`},
		"other name":        {call, headers("Mcp-Method: tools/call", "Mcp-Name: ADD"), `Mcp-Name says "ADD"`},
		"two names":         {call, headers("Mcp-Method: tools/call", "Mcp-Name: add", "Mcp-Name: sub"), "more than once"},
		"bad encoding":      {call, headers("Mcp-Method: tools/call", "Mcp-Name: =?base64?YWR?="), "no valid encoding"},
		"raw bytes":         {call, headers("Mcp-Method: tools/call", "Mcp-Name: add\x80"), "no valid encoding"},
		"long":              {call, headers("Mcp-Method: tools/call", "Mcp-Name: "+strings.Repeat("é", 5000)), "..."},
		"escapes in body":   {`{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"\u0061dd"}}`, headers("Mcp-Method: tools/call", "Mcp-Name: add"), ""},
		"prompt":            {`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p","uri":"u"}}`, headers("Mcp-Method: prompts/get", "Mcp-Name: p"), ""},
		"resource":          {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"name":"p","uri":"file:///é"}}`, headers("Mcp-Method: resources/read", "Mcp-Name: "+Encode("file:///é")), ""},
		"resource unlike":   {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"name":"p","uri":"u"}}`, headers("Mcp-Method: resources/read", "Mcp-Name: p"), "Mcp-Name says"},
		"task get":          {`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t"}}`, headers("Mcp-Method: tasks/get", "Mcp-Name: t"), ""},
		"task update":       {`{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{"taskId":"t"}}`, headers("Mcp-Method: tasks/update"), "Mcp-Name is missing"},
		"task cancel":       {`{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":{"taskId":"t"}}`, headers("Mcp-Method: tasks/cancel", "Mcp-Name: u"), "Mcp-Name says"},
		"list":              {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, headers("Mcp-Method: tools/list", "Mcp-Name: whatever"), ""},
		"unknown method":    {`{"jsonrpc":"2.0","id":1,"method":"x/y"}`, headers("Mcp-Method: x/y"), ""},
		"nothing to name":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, headers("Mcp-Method: tools/call"), ""},
		"name of nothing":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, headers("Mcp-Method: tools/call", "Mcp-Name: 7"), "no such value"},
		"notification":      {`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, headers(), ""},
		"notification true": {`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, headers("Mcp-Method: notifications/cancelled"), ""},
		"notification lie":  {`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, headers("Mcp-Method: tools/call"), "Mcp-Method says"},
		"response":          {`{"jsonrpc":"2.0","id":1,"result":{}}`, headers("Mcp-Method: tools/call"), ""},
	} {
		t.Run(name, func(t *testing.T) { refused(t, Check(tt.h, request(t, tt.body)), tt.want) })
	}
}

func TestName(t *testing.T) {
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u0061"}}`:          "a",
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"u","name":"n"}}`: "u",
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t"}}`:              "t",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}`:                 "-",
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"n"}}`:               "-",
	} {
		got, ok := Name(request(t, body))
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%s has the name %q, want %q", body, got, want)
		}
	}
}
