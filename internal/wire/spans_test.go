package wire

import (
	"strings"
	"testing"
)

func TestNamesTable(t *testing.T) {
	for id, name := range names {
		if name == "" {
			t.Errorf("member %d has no name", id)
		}
	}
	for l, s := range levels {
		if l > 0 && levels[l-1].to != s.from {
			t.Errorf("level %d does not begin where the one above ends", l)
		}
	}
	if numMembers > 32 {
		t.Error("parser.seen has 32 bits")
	}
}

func TestParamSpans(t *testing.T) {
	in := `{"jsonrpc":"2.0","method":"m","params":{
		"_meta" : {"progressToken":"mt","io.modelcontextprotocol/protocolVersion":"mv",
			"io.modelcontextprotocol/clientCapabilities":{"mc":1},"io.modelcontextprotocol/clientInfo":{"mi":1},
			"io.modelcontextprotocol/logLevel":"ml","io.modelcontextprotocol/subscriptionId":"ms",
			"io.modelcontextprotocol/related-task":{"taskId":"mr"},"progresstoken2":1},
		"progressToken":1,"requestId":"r","uri":"u","name":"n","protocolVersion":"v","level":"l",
		"capabilities":{"c":{}},"clientInfo":{"i":[]},"task":{},"taskId":"t","requestState":"s",
		"inputResponses":[1, 2],"arguments":{"name":"inner"},"cursor":null}}`
	m := mustParse(t, in)
	p := m.P
	tests := []struct {
		name string
		span Span
		want string
	}{
		{"Token", p.Token, `1`}, {"RequestID", p.RequestID, `"r"`}, {"URI", p.URI, `"u"`}, {"Name", p.Name, `"n"`},
		{"ProtocolVersion", p.ProtocolVersion, `"v"`}, {"Level", p.Level, `"l"`}, {"Capabilities", p.Capabilities, `{"c":{}}`},
		{"ClientInfo", p.ClientInfo, `{"i":[]}`}, {"Task", p.Task, `{}`}, {"TaskID", p.TaskID, `"t"`},
		{"RequestState", p.RequestState, `"s"`}, {"InputResponses", p.InputResponses, `[1, 2]`},
		{"Arguments", p.Arguments, `{"name":"inner"}`}, {"Cursor", p.Cursor, `null`},
		{"MetaToken", p.MetaToken, `"mt"`}, {"MetaVersion", p.MetaVersion, `"mv"`}, {"MetaClientCaps", p.MetaClientCaps, `{"mc":1}`},
		{"MetaClientInfo", p.MetaClientInfo, `{"mi":1}`}, {"MetaLogLevel", p.MetaLogLevel, `"ml"`},
		{"MetaSubscription", p.MetaSubscription, `"ms"`}, {"MetaRelatedTask", p.MetaRelatedTask, `{"taskId":"mr"}`},
	}
	for _, tt := range tests {
		if got := string(m.Bytes(tt.span)); got != tt.want {
			t.Errorf("%s = %s, want %s", tt.name, got, tt.want)
		}
	}
	if got := string(m.Bytes(p.Meta)); !strings.HasPrefix(got, `{"progressToken":"mt"`) || !strings.HasSuffix(got, `2":1}`) {
		t.Errorf("Meta = %s", got)
	}
	if got := string(m.Bytes(m.Params)); !strings.HasPrefix(got, "{\n") || !strings.HasSuffix(got, `null}`) {
		t.Errorf("Params = %s", got)
	}
}

func TestParamSpansAbsent(t *testing.T) {
	for _, params := range []string{`[{"name":1}]`, `null`, `{}`, `{"x":{"name":1}}`, `{"Name":1,"nameſ":2,"_METa":{"progressToken":1}}`} {
		m := mustParse(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":`+params+`}`)
		if m.P != (ParamSpans{}) {
			t.Errorf("params %s: %+v", params, m.P)
		}
		if got := string(m.Bytes(m.Params)); got != params {
			t.Errorf("Params = %s, want %s", got, params)
		}
	}
	m := mustParse(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[{"progressToken":1}],"name":[]}}`)
	if m.P.MetaToken.Present() || !m.P.Meta.Present() || string(m.Bytes(m.P.Name)) != `[]` {
		t.Errorf("%+v", m.P)
	}
}

// Cases 65 and 66: what is carried keeps its bytes.
func TestFidelity(t *testing.T) {
	args := `{"a":9007199254740993,"b":1000000,"c":1.0,"d":1e21,"e":-0,"s":"a<b>&c \u003c \ud800 👨‍👩‍👧 ` + "\u2028" + `"}`
	in := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":` + args + `,"zNew":{"k":[1]}}}`
	m := mustParse(t, in)
	if got := string(m.Bytes(m.P.Arguments)); got != args {
		t.Errorf("arguments = %s", got)
	}
	got := Splice(nil, m.Raw, Edit{m.ID, []byte(`"p-77"`)}, Edit{m.P.Name, []byte(`"u"`)})
	want := strings.Replace(strings.Replace(in, `"id":1`, `"id":"p-77"`, 1), `"name":"t"`, `"name":"u"`, 1)
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRawDoesNotLeak(t *testing.T) {
	in := []byte(`{"jsonrpc":"2.0","id":1,"method":"m"}` + "\n" + `next`)
	m, err := Parse(in[:len(in)-4])
	if err != nil {
		t.Fatal(err)
	}
	_ = append(m.Raw, "XXXXX"...)
	_ = append(m.Bytes(m.ID), 'X')
	if string(in) != `{"jsonrpc":"2.0","id":1,"method":"m"}`+"\nnext" {
		t.Errorf("an append wrote into the input: %s", in)
	}
}

func TestValidIDToken(t *testing.T) {
	for _, tok := range []string{`0`, `-0`, `-1`, `10`, `18446744073709551616`, `""`, `"1e3"`, `"\ud800"`, strings.Repeat("9", 1024)} {
		if !ValidIDToken([]byte(tok)) {
			t.Errorf("%s is refused", tok)
		}
	}
	for _, tok := range []string{``, `-`, `01`, `-01`, `+1`, `1.0`, `1e0`, `1E2`, ` 1`, `1 `, `null`, `true`, `[]`, `{}`, `"`, `"a`, `"a"b"`,
		"\"\n\"", "\"\xff\"", `1,2`, `0x1`, strings.Repeat("9", 1025), `"` + strings.Repeat("a", 1025) + `"`} {
		if ValidIDToken([]byte(tok)) {
			t.Errorf("%s is accepted", tok)
		}
	}
}

func TestKindString(t *testing.T) {
	for k, want := range map[Kind]string{Request: "request", Notification: "notification", Response: "response", 0: "kind(0)"} {
		if k.String() != want {
			t.Errorf("got %s, want %s", k, want)
		}
	}
}
