package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// awkward is JSON that whoever decodes and encodes it does not give back: numbers that
// no float holds, escapes of one's own, members twice, white space, a lone surrogate.
const awkward = `{ "a":9007199254740993,"b":1000000,"c":1.0 ,"d":1e21,"e":-0, "f":0.1e+1,"s":"a<b>&c \u003c \/ \ud83d\udea6 \ud800",` +
	`"x":1,"x":2,"":{"":[ ]},"z":"` + "\u2028\u00e9" + `"}`

// TestBytesArriveAsSent hashes params at the server, and compares the result that comes
// back, over both transports and with both isolations.
func TestBytesArriveAsSent(t *testing.T) {
	for _, isolation := range []string{"session", "shared"} {
		t.Run(isolation, func(t *testing.T) {
			b := box.Start(t, []string{"--isolation", isolation}, fakeServer(t)...)
			checkTransports(t, b)
		})
	}
}

// TestBytesArriveAsSentThroughHTTP has another Signalbox as the server: each client
// transport meets each server transport.
func TestBytesArriveAsSentThroughHTTP(t *testing.T) {
	server := box.Start(t, nil, fakeServer(t)...)
	for _, path := range []string{"/mcp", "/sse"} {
		t.Run("server"+path, func(t *testing.T) { checkTransports(t, box.StartURL(t, server.URL+path)) })
	}
}

// TestServerEverythingByURL fronts the reference server over both of its HTTP
// transports.
func TestServerEverythingByURL(t *testing.T) {
	for _, transport := range []string{"streamableHttp", "sse"} {
		t.Run(transport, func(t *testing.T) {
			url := httpServer(t, "server-everything", transport)
			if transport == "sse" {
				url += "/sse"
			} else {
				url += "/mcp"
			}
			b := box.StartURL(t, url)
			c := rawclient.New(b.URL)
			defer c.Close()
			for name, open := range map[string]func() (rawclient.Session, error){
				"streamable": func() (rawclient.Session, error) { return c.Streamable(t.Context(), rawclient.Options{}) },
				"legacy":     func() (rawclient.Session, error) { return c.Legacy(t.Context(), rawclient.Options{}) },
			} {
				s, err := open()
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				m, err := s.Call(t.Context(), "1", "tools/call", `{"name":"echo","arguments":{"message":"over"}}`)
				if err != nil || !strings.Contains(string(m.Result), "Echo: over") {
					t.Errorf("%s: %s, %v", name, m.Raw, err)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// checkTransports sends awkward bytes over both client transports.
func checkTransports(t *testing.T, b *box.Box) {
	t.Helper()
	c := rawclient.New(b.URL)
	defer c.Close()
	streamable, err := c.Streamable(t.Context(), rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	legacy, err := c.Legacy(t.Context(), rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]rawclient.Session{"streamable": streamable, "legacy": legacy} {
		t.Run(name, func(t *testing.T) {
			checkBytes(t, s, awkward)
			checkBytes(t, s, fmt.Sprintf(`{"big":"%s","n":18446744073709551616}`, strings.Repeat(`é\u00e9<&>`, 300_000)))
		})
	}
}

func checkBytes(t *testing.T, s rawclient.Session, arguments string) {
	t.Helper()
	params := ` { "name":"hash" ,"arguments" : ` + arguments + `, "more":[1.50,null] }`
	m, err := s.Call(t.Context(), "-7", "tools/call", params)
	if err != nil {
		t.Fatal(err)
	}
	var hashed struct{ StructuredContent struct{ SHA256 string } }
	if err := json.Unmarshal(m.Result, &hashed); err != nil {
		t.Fatalf("%.300s: %v", m.Raw, err)
	}
	if sum := sha256.Sum256([]byte(strings.TrimSpace(params))); hashed.StructuredContent.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("the server got other params than %.200s", params)
	}
	if string(m.ID) != "-7" {
		t.Errorf("answered under id %s", m.ID)
	}
	m, err = s.Call(t.Context(), `"9007199254740993"`, "tools/call", `{"name":"echo","arguments":`+arguments+`}`)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(m.Result), arguments) {
		t.Errorf("the result is %.300s", m.Result)
	}
}
