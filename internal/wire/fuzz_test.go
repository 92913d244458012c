package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"
)

var seeds = []string{
	call200,
	`{"jsonrpc":"2.0","id":"a\u002db","method":"m\u0065"}`,
	`{"jsonrpc":"2.0","id":-1,"result":{"a":[1,-0.5e+3,true,false,null,"\ud83d\ude00\ud800é"]}}`,
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`,
	"\xef\xbb\xbf {\r\n\"jsonrpc\" : \"2.0\" ,\t\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}} \n",
	`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":"x","io.modelcontextprotocol/y":1},"Name":1,"taſK":2}}`,
	`{"jsonrpc":"2.0","id":1,"method":"m","params":[[[]],{}],"Method":1}`,
	`{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`,
	`{oops`, `01`, `[1,]`, `"\u12"`, `{} {}`, "\"\xff\"",
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		m, err := Parse(in)
		if !bytes.Equal(in, before) {
			t.Fatal("Parse wrote into its input")
		}
		text := bytes.TrimPrefix(in, bom)
		valid := json.Valid(text) && utf8.Valid(text)
		if err != nil {
			e := asError(t, err)
			if valid && e.Code == codeParse {
				t.Fatalf("valid JSON got %v", e)
			}
			if e.ID != nil && (!valid || !ValidIDToken(e.ID)) {
				t.Fatalf("error echoes id %s", e.ID)
			}
			return
		}
		if !valid {
			t.Fatalf("accepted what encoding/json refuses: %q", in)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(m.Raw, &members); err != nil {
			t.Fatal(err)
		}
		if string(members["id"]) == "null" && m.Error.Present() {
			delete(members, "id")
		}
		for name, s := range map[string]Span{"id": m.ID, "method": m.Method, "params": m.Params, "result": m.Result, "error": m.Error} {
			if want, ok := members[name]; ok != s.Present() || !bytes.Equal(want, m.Bytes(s)) {
				t.Fatalf("%s is %s, encoding/json says %s", name, m.Bytes(s), want)
			}
		}
		var version, method string
		if err := json.Unmarshal(members["jsonrpc"], &version); err != nil || version != "2.0" {
			t.Fatalf("accepted jsonrpc %s", members["jsonrpc"])
		}
		if m.Kind != Response {
			if err := json.Unmarshal(members["method"], &method); err != nil || method != string(m.MethodName()) {
				t.Fatalf("method is %s, encoding/json says %s", m.MethodName(), method)
			}
		}
		checkParams(t, &m)
	})
}

// checkParams compares two of the inner levels with encoding/json.
func checkParams(t *testing.T, m *Message) {
	var params, meta map[string]json.RawMessage
	if json.Unmarshal(m.Bytes(m.Params), &params) != nil {
		params = nil
	}
	if got := m.Bytes(m.P.Name); !bytes.Equal(got, params["name"]) {
		t.Fatalf("name is %s, encoding/json says %s", got, params["name"])
	}
	if got := m.Bytes(m.P.Meta); !bytes.Equal(got, params["_meta"]) {
		t.Fatalf("_meta is %s, encoding/json says %s", got, params["_meta"])
	}
	if json.Unmarshal(m.Bytes(m.P.Meta), &meta) != nil {
		meta = nil
	}
	if got := m.Bytes(m.P.MetaToken); !bytes.Equal(got, meta["progressToken"]) {
		t.Fatalf("progressToken is %s, encoding/json says %s", got, meta["progressToken"])
	}
}

func FuzzIDRoundTrip(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), "p-1")
		f.Add([]byte(s), "\x00\xff\"")
	}
	f.Fuzz(func(t *testing.T, in []byte, id string) {
		m, err := Parse(in)
		if err != nil || !m.ID.Present() {
			return
		}
		tok := AppendQuote(nil, id)
		if !ValidIDToken(tok) {
			return
		}
		out := Splice(nil, m.Raw, Edit{m.ID, tok})
		m2, err := Parse(out)
		if err != nil || m2.Kind != m.Kind || !bytes.Equal(m2.Bytes(m2.ID), tok) {
			t.Fatalf("%s with id %s: %v", out, tok, err)
		}
		if back := Splice(nil, m2.Raw, Edit{m2.ID, m.Bytes(m.ID)}); !bytes.Equal(back, m.Raw) {
			t.Fatalf("came back as %s", back)
		}
		line := bytes.Clone(m.Raw)
		OneLine(line)
		m3, err := Parse(line)
		if err != nil || m3.P != m.P || bytes.ContainsAny(line, "\r\n") {
			t.Fatalf("on one line: %s: %v", line, err)
		}
	})
}

func FuzzSplitBatch(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
		f.Add([]byte("[" + s + " ,\n" + s + "]"))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		parts, err := SplitBatch(in)
		text := bytes.TrimPrefix(in, bom)
		var want []json.RawMessage
		jsonErr := json.Unmarshal(text, &want)
		if err != nil {
			if e := asError(t, err); e.Code == codeParse && json.Valid(text) && utf8.Valid(text) {
				t.Fatalf("valid JSON got %v", e)
			}
			return
		}
		if jsonErr != nil || !slices.EqualFunc(parts, want, func(a []byte, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("got %q, encoding/json %q, %v", parts, want, jsonErr)
		}
	})
}

// hasDuplicates reports whether an object has two members of one decoded name.
func hasDuplicates(raw []byte) bool {
	var members map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(raw))
	n := 0
	for _, err := d.Token(); d.More() && err == nil; n++ {
		if _, err = d.Token(); err != nil {
			break
		}
		var value json.RawMessage
		err = d.Decode(&value)
	}
	return json.Unmarshal(raw, &members) != nil || n != len(members)
}

func FuzzLookupRemove(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), "id")
		f.Add([]byte(s), "params")
	}
	f.Add([]byte("{\n\"a\" : {} , \"\\u0062\":1 }"), "b")
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		s, ok := Lookup(raw, name)
		out := Remove(raw, name)
		if !json.Valid(raw) || !utf8.Valid(raw) {
			return // only that nothing breaks
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil || hasDuplicates(raw) {
			return
		}
		want, there := members[name]
		if there != ok || !bytes.Equal(want, s.Of(raw)) {
			if end := scanValue(raw, skipSpace(raw, 0), 0); end == tooDeep {
				return
			}
			t.Fatalf("Lookup = %s, %v, encoding/json says %s, %v", s.Of(raw), ok, want, there)
		}
		var after map[string]json.RawMessage
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("Remove left %s: %v", out, err)
		}
		delete(members, name)
		if len(after) != len(members) {
			t.Fatalf("Remove left %d members, want %d", len(after), len(members))
		}
		for k, v := range members {
			if !bytes.Equal(after[k], v) {
				t.Fatalf("Remove changed %q from %s to %s", k, v, after[k])
			}
		}
	})
}

func FuzzFindID(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), 10, 20)
		f.Add([]byte(s), len(s)/2, len(s)/2)
	}
	f.Add([]byte(`{"result":{"a":"xxxxxxxxxxxxxxx"},"id":"a\"b"}`), 5, 30)
	f.Fuzz(func(t *testing.T, in []byte, headEnd, tailStart int) {
		headEnd, tailStart = min(max(headEnd, 0), len(in)), min(max(tailStart, 0), len(in))
		got, ok := FindID(in[:headEnd:headEnd], in[tailStart:])
		if ok != (got != nil) || ok && !ValidIDToken(got) {
			t.Fatalf("FindID = %s, %v", got, ok)
		}
		// A guess must not be wrong for a message that Parse accepts.
		if m, err := Parse(in); ok && err == nil && headEnd <= tailStart && !bytes.Equal(m.Bytes(m.ID), got) {
			t.Fatalf("FindID = %s, the id is %s", got, m.Bytes(m.ID))
		}
	})
}
