package wire

import (
	"strings"
	"testing"
	"time"
)

// Every prefix of a message is refused, and none of them is read past its end.
func TestParsePrefixes(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":"a\n","method":"x","params":{"_meta":{"progressToken":-1.5e+3},"a":[[],{},true,null,"é\u00e9"]}}`
	mustParse(t, in)
	for i := range len(in) {
		b := []byte(in)[:i:i]
		if _, err := Parse(b); err == nil || asError(t, err).Code != codeParse {
			t.Errorf("Parse(%s) = %v, want -32700", b, err)
		}
	}
}

// A stop byte is found at every distance from a word's start, and only there.
func TestScanStringOffsets(t *testing.T) {
	for n := range 40 {
		body := strings.Repeat("\u00ff", n/2) + strings.Repeat("!", n%2) + strings.Repeat("#", n)
		for _, tail := range []string{"", "x", "12345678901234567"} {
			in := `"` + body + `"`
			if got := scanString([]byte(in+tail), 0); got != len(in) {
				t.Errorf("scanString(%s) = %d, want %d", in+tail, got, len(in))
			}
			for c := range byte(0x20) {
				bad := `"` + body + string(rune(c)) + `abcdefghij"`
				if got := scanString([]byte(bad), 0); got != ^(1 + len(body)) {
					t.Errorf("scanString(%q) = %d, want a fault at %d", bad, got, 1+len(body))
				}
			}
			esc := `"` + body + `\"\\\u00e9` + tail + `"`
			if got := scanString([]byte(esc), 0); got != len(esc) {
				t.Errorf("scanString(%s) = %d, want %d", esc, got, len(esc))
			}
		}
	}
}

// Case 71.
func TestParseHostile(t *testing.T) {
	tests := map[string]string{
		"arrays":       strings.Repeat("[", 100_000),
		"objects":      strings.Repeat(`{"a":`, 1<<20/5),
		"in params":    `{` + v + `,"id":1,"method":"x","params":{"_meta":` + strings.Repeat(`{"a":[`, 1<<17),
		"one name":     `{` + strings.Repeat(`"id":1,`, 1<<17) + v + `}`,
		"params names": `{` + v + `,"id":1,"method":"x","params":{` + strings.Repeat(`"nAmf":1,`, 1<<16) + `"name":1,"name":2}}`,
		"reserved":     `{` + v + `,"id":1,"method":"x","params":{"_meta":{` + strings.Repeat(`"io.modelcontextprotocol/a":1,`, 1<<15) + `"z":1}}}`,
	}
	for name, in := range tests {
		start := time.Now()
		_, err := Parse([]byte(in))
		took := time.Since(start)
		asError(t, err)
		if took > time.Second { // 100 ms is the aim; the race detector takes its share
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func TestParseMixedNesting(t *testing.T) {
	var open, end strings.Builder
	var closers []byte
	for i := range 998 {
		if i%3 == 0 || i%7 == 0 {
			open.WriteString(`{"k":`)
			closers = append(closers, '}')
		} else {
			open.WriteString(`[1,`)
			closers = append(closers, ']')
		}
	}
	for i := len(closers) - 1; i >= 0; i-- {
		end.WriteByte(closers[i])
	}
	mustParse(t, `{`+v+`,"id":1,"method":"x","params":{"a":`+open.String()+`1`+end.String()+`}}`)
	for i := range closers { // one wrong closer anywhere is found
		bad := []byte(end.String())
		bad[i] ^= '}' ^ ']'
		_, err := Parse([]byte(`{` + v + `,"id":1,"method":"x","params":{"a":` + open.String() + `1` + string(bad) + `}}`))
		if asError(t, err).Code != codeParse {
			t.Fatalf("closer %d: %v", i, err)
		}
	}
}

func TestParseErrorPosition(t *testing.T) {
	_, err := Parse([]byte("\xef\xbb\xbf {\"a\" 1}"))
	if got, want := asError(t, err).Error(), "Parse error: no valid JSON at byte 9 (-32700)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseAllocs(t *testing.T) {
	in := []byte(`{` + v + `,"id":1,"method":"tools/call","params":{"unknown":1,"_meta":{"some.vendor.example/longer-than-reserved-names":1,` +
		`"io.modelcontextprotocol/protocolVersion":"x"},"name":"n","arguments":{"a":[[[1]]]}}}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Parse(in); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
