package upstream

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

func parsed(t *testing.T, text string) Request {
	t.Helper()
	msg, err := wire.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return NewRequest(msg)
}

func TestPutTrace(t *testing.T) {
	tr, err := trace.New(trace.Config{Endpoint: "http://127.0.0.1:1", Failed: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = tr.Close(over)
	}()
	span := tr.Start("x", "", "")
	for in, want := range map[string]string{
		`{"id":1,"jsonrpc":"2.0","method":"m"}`:                                                                       `{"id":1,"jsonrpc":"2.0","method":"m","params":{"_meta":{"traceparent":P}}}`,
		` {"id":1,"jsonrpc":"2.0","method":"m" } `:                                                                    `{"id":1,"jsonrpc":"2.0","method":"m" ,"params":{"_meta":{"traceparent":P}}}`,
		`{"jsonrpc":"2.0","id":1,"params":{},"method":"m"}`:                                                           `{"jsonrpc":"2.0","id":1,"params":{"_meta":{"traceparent":P}},"method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"params":{ "n":1.0 },"method":"m"}`:                                                  `{"jsonrpc":"2.0","id":1,"params":{"_meta":{"traceparent":P}, "n":1.0 },"method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{ },"n":1e2}}`:                                        `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":P },"n":1e2}}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":1,"_meta":{"progressToken":7}}}`:                          `{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":1,"_meta":{"traceparent":P,"progressToken":7}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"a":"b", "traceparent" : "x" ,"tracestate":"s=1"}}}`: `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"a":"b", "traceparent" : P ,"tracestate":"s=1"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":7}}}`:                                  `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":P}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[1]}}`:                                                `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[1]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":[{"_meta":{}}]}`:                                               `{"jsonrpc":"2.0","id":1,"method":"m","params":[{"_meta":{}}]}`,
	} {
		req := parsed(t, in)
		PutTrace(&req)
		if !bytes.Equal(req.Msg.Raw, parsed(t, in).Msg.Raw) {
			t.Errorf("%s: without a span it became %s", in, req.Msg.Raw)
		}
		req.Span = span
		PutTrace(&req)
		if got := strings.Replace(string(req.Msg.Raw), `"`+span.Parent()+`"`, "P", 1); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
		if string(req.Msg.Bytes(req.Msg.ID)) != "1" {
			t.Errorf("%s: the spans are not those of %s", in, req.Msg.Raw)
		}
	}
}

func TestTraceParent(t *testing.T) {
	const meta = `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":"in meta","tracestate":"m=1"}}}`
	for name, tt := range map[string]struct {
		text          string
		header        http.Header
		parent, state string
	}{
		"neither":    {`{"jsonrpc":"2.0","id":1,"method":"m"}`, nil, "", ""},
		"meta":       {meta, nil, "in meta", "m=1"},
		"header":     {`{"jsonrpc":"2.0","id":1,"method":"m"}`, http.Header{"Traceparent": {"in header"}, "Tracestate": {"h=1"}}, "in header", "h=1"},
		"both":       {meta, http.Header{"Traceparent": {"in header"}}, "in header", ""},
		"no strings": {`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":{},"tracestate":null}}}`, nil, "", ""},
		"too long":   {`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":"` + strings.Repeat("x", 2000) + `"}}}`, nil, "", ""},
	} {
		req := parsed(t, tt.text)
		req.Header = tt.header
		if parent, state := TraceParent(&req); parent != tt.parent || state != tt.state {
			t.Errorf("%s: %q, %q", name, parent, state)
		}
	}
}

func TestPutTraceWithoutSpanAllocatesNothing(t *testing.T) {
	req := parsed(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":"x"}}}`)
	if n := testing.AllocsPerRun(100, func() { PutTrace(&req) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
