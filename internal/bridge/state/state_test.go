package state

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

type person string

func (p person) Key() string { return string(p) }

func request(t testing.TB, who upstream.Principal, raw string) *upstream.Request {
	t.Helper()
	msg, err := wire.Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	req := upstream.NewRequest(msg)
	req.Principal = who
	return &req
}

const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"b":["x",{"c":null}]},"_meta":{}}}`

func ring(t testing.TB, secrets ...string) *Ring {
	t.Helper()
	var keys [][]byte
	for _, s := range secrets {
		keys = append(keys, []byte(strings.Repeat(s, 16)))
	}
	r, err := NewRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	r := ring(t, "k")
	b := Bind("s", request(t, person("ann"), call))
	for _, payload := range []string{"", "x", strings.Repeat("y", 5000)} {
		token := r.Seal(b, Parked, []byte(payload), time.Minute)
		if strings.ContainsAny(token, "\"\\ \r\n") {
			t.Errorf("token %q cannot stand in a string as it is", token)
		}
		kind, got, err := r.Open(b, []byte(token))
		if err != nil || kind != Parked || string(got) != payload {
			t.Errorf("got %c %q %v", kind, got, err)
		}
		if again := r.Seal(b, Parked, []byte(payload), time.Minute); again == token {
			t.Error("two tokens are alike")
		}
	}
}

func TestNameIsTheSameEachTime(t *testing.T) {
	r := ring(t, "k")
	b := BindTask("s", request(t, person("ann"), call))
	one := r.Name(b, Task, []byte("task-1"))
	if two := r.Name(b, Task, []byte("task-1")); two != one {
		t.Error("the same name twice differs")
	}
	if other := r.Name(b, Task, []byte("task-2")); other == one {
		t.Error("two names are alike")
	}
	if bob := r.Name(BindTask("s", request(t, person("bob"), call)), Task, []byte("task-1")); bob == one {
		t.Error("two principals have one name")
	}
	if _, got, err := r.Open(b, []byte(one)); err != nil || string(got) != "task-1" {
		t.Errorf("%q %v", got, err)
	}
}

// What differs in any of these is another request; the answer is always the
// same error.
func TestRefused(t *testing.T) {
	r := ring(t, "k")
	b := Bind("s", request(t, person("ann"), call))
	token := r.Seal(b, Parked, []byte("payload"), time.Minute)
	text := strings.TrimPrefix(token, token[:strings.LastIndexByte(token, '.')+1])
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(i int) string {
		c := append([]byte(nil), raw...)
		c[i] ^= 1
		return token[:len(token)-len(text)] + base64.RawURLEncoding.EncodeToString(c)
	}
	for name, tt := range map[string]struct {
		r     *Ring
		b     Binding
		token string
	}{
		"other principal":            {r, Bind("s", request(t, person("bob"), call)), token},
		"no principal":               {r, Bind("s", request(t, nil, call)), token},
		"other server":               {r, Bind("S", request(t, person("ann"), call)), token},
		"other tool":                 {r, Bind("s", request(t, person("ann"), strings.Replace(call, `"t"`, `"u"`, 1))), token},
		"other method":               {r, Bind("s", request(t, person("ann"), strings.Replace(call, `tools/call`, `prompts/get`, 1))), token},
		"other argument":             {r, Bind("s", request(t, person("ann"), strings.Replace(call, `"a":1`, `"a":2`, 1))), token},
		"other spelling of a number": {r, Bind("s", request(t, person("ann"), strings.Replace(call, `"a":1`, `"a":1.0`, 1))), token},
		"string for number":          {r, Bind("s", request(t, person("ann"), strings.Replace(call, `"a":1`, `"a":"1"`, 1))), token},
		"order of elements":          {r, Bind("s", request(t, person("ann"), strings.Replace(call, `["x",{"c":null}]`, `[{"c":null},"x"]`, 1))), token},
		"task binding":               {r, BindTask("s", request(t, person("ann"), call)), token},
		"other key":                  {ring(t, "z"), b, token},
		"empty":                      {r, b, ""},
		"prefix only":                {r, b, "sb1."},
		"no text":                    {r, b, token[:len(token)-len(text)]},
		"cut":                        {r, b, token[:len(token)-4]},
		"one more":                   {r, b, token + "A"},
		"padding":                    {r, b, token + "="},
		"nonce changed":              {r, b, flip(0)},
		"text changed":               {r, b, flip(14)},
		"tag changed":                {r, b, flip(len(raw) - 1)},
		"not ours":                   {r, b, "eyJhbGciOiJIUzI1NiJ9.e30.x"},
	} {
		if _, _, err := tt.r.Open(tt.b, []byte(tt.token)); err != ErrState {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSameRequestBuiltAnew(t *testing.T) {
	r := ring(t, "k")
	token := r.Seal(Bind("s", request(t, person("ann"), call)), Wrapped, nil, 0)
	anew := `{"params":{"_meta":{"x":1},"requestState":"s","inputResponses":{},"arguments":{ "\u0062":["\u0078",{"c":null}],"a":1 },"name":"\u0074"},"method":"tools/call","id":"2","jsonrpc":"2.0"}`
	if _, _, err := r.Open(Bind("s", request(t, person("ann"), anew)), []byte(token)); err != nil {
		t.Error(err)
	}
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ring(t, "k")
		b := Bind("s", request(t, person("ann"), call))
		token := []byte(r.Seal(b, Parked, nil, time.Minute))
		time.Sleep(59 * time.Second)
		if _, _, err := r.Open(b, token); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if _, _, err := r.Open(b, token); err != ErrState {
			t.Error(err)
		}
	})
}

// A key that was replaced still opens.
func TestRotation(t *testing.T) {
	b := Bind("s", request(t, person("ann"), call))
	token := []byte(ring(t, "old").Seal(b, Parked, []byte("p"), time.Minute))
	if _, got, err := ring(t, "new", "old").Open(b, token); err != nil || string(got) != "p" {
		t.Errorf("%q %v", got, err)
	}
	if _, _, err := ring(t, "new").Open(b, token); err != ErrState {
		t.Error(err)
	}
}

func TestShortKey(t *testing.T) {
	if _, err := NewRing([]byte("short")); err == nil {
		t.Error("a key of five bytes was taken")
	}
	if _, err := NewRing(); err == nil {
		t.Error("a ring without a key was made")
	}
}

// FuzzOpen knows one token that opens. It is fixed, since the workers that share
// what they find are processes of their own. Printed by Seal of what is opened
// below; when the format changes, it has to be printed again.
func FuzzOpen(f *testing.F) {
	const good = "sb1.d7b2144f.kPKi8t7IALaegxXcRknbd6WsjvzzyRdabU6VlfLtWzolkcKj6PfW3THn0bk"
	r := ring(f, "k")
	b := Bind("s", request(f, person("ann"), call))
	if _, payload, err := r.Open(b, []byte(good)); err != nil || string(payload) != "payload" {
		f.Fatalf("the fixed token opens to %q, %v", payload, err)
	}
	f.Add([]byte(good))
	f.Add([]byte("sb1.00000000."))
	f.Fuzz(func(t *testing.T, token []byte) {
		if _, _, err := r.Open(b, token); err == nil && string(token) != good {
			t.Errorf("%q was taken", token)
		}
	})
}

// Requests of one digest ask for the same.
func FuzzDigest(f *testing.F) {
	f.Add(`{"a":1,"b":2}`, `{"b":2,"a":1}`)
	f.Add(`["ab"]`, `["a","b"]`)
	f.Add(`{"a":{"b":"c"}}`, `{"a":{"b":"\u0063"}}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		read := func(args string) (sum [32]byte, value any, ok bool) {
			m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":` + args + `}}`))
			if err != nil {
				return sum, nil, false
			}
			d := json.NewDecoder(bytes.NewReader(m.Bytes(m.P.Arguments)))
			d.UseNumber()
			return digest(&m), value, d.Decode(&value) == nil
		}
		a, x, ok1 := read(one)
		b, y, ok2 := read(two)
		if ok1 && ok2 && (a == b) && !reflect.DeepEqual(x, y) {
			t.Errorf("%s and %s have one digest", one, two)
		}
	})
}
