package front

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// FuzzFront: whatever bytes a client sends to the whole front, with authorization on:
// no status of 500 or above but for the documented ones, and not a byte for the server
// unless the key was sent, whole and in a header. The names of authRig.expand may
// stand in the bytes, so that the fuzzer finds what a client knows; a key is put in
// only where knows says so.
func FuzzFront(f *testing.F) {
	r := newAuthRig(f, setup{})
	r.ready()
	for _, c := range refusals() {
		if !strings.Contains(c.send, dripMark) && len(c.send) < 8<<10 {
			f.Add([]byte(c.send), true)
			f.Add([]byte(c.send), false)
		}
	}
	f.Add([]byte(req("POST /mcp", initBody(rev), asAlice)), true)
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"), true)
	f.Fuzz(func(t *testing.T, text []byte, knows bool) {
		r.t = t
		sent := string(text)
		if !knows {
			sent = strings.NewReplacer("{alice}", "alice", "{mallory}", "mallory", "{token}", "e30.e30.e30", "{bob}", "e30.e30.e31").Replace(sent)
		}
		// Each time a fresh token would cost more than all the rest.
		sent = strings.NewReplacer("{alice}", r.alice, "{mallory}", r.mallory, "{hers}", r.session, "{old}", r.legacyID).Replace(sent)
		allowed := strings.Contains(sent, r.alice) || strings.Contains(sent, r.mallory)
		statuses, begun := r.answers(sent)
		for _, status := range statuses {
			if status >= 500 && status != 501 && status != 503 && status != 505 {
				t.Errorf("status %d", status)
			}
			if !allowed && status < 400 && !open(sent) {
				t.Errorf("status %d for nobody", status)
			}
		}
		for _, m := range r.reached() {
			if !allowed {
				t.Errorf("without a key the server got %s", m)
			}
			if strings.Contains(m, "danger") && strings.Contains(m, `"tools/call"`) {
				t.Errorf("against the rules the server got %s", m)
			}
		}
		r.tidy(begun)
	})
}

// open tells whether bytes may hold a request that needs no credential.
func open(sent string) bool {
	for _, free := range []string{"healthz", "readyz", ".well-known", "%", "OPTIONS", "PRI ", "\x00"} {
		if strings.Contains(sent, free) {
			return true
		}
	}
	return false
}

// answers sends bytes to one connection and reads the statuses of the answers, and
// which sessions they began. A stream of events is left after its head.
func (r *authRig) answers(sent string) (statuses []int, begun []string) {
	conn, err := r.listen.dial(context.Background(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	var writing sync.WaitGroup
	writing.Go(func() { _, _ = io.WriteString(conn, sent); _, _ = io.WriteString(conn, end) })
	defer writing.Wait()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // what waits for more gets none
	in := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses, begun
		}
		statuses = append(statuses, res.StatusCode)
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			begun = append(begun, id)
		}
		if res.StatusCode == http.StatusSwitchingProtocols || res.Header.Get("Content-Type") == "text/event-stream" {
			return statuses, begun
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.Close {
			return statuses, begun
		}
	}
}

// end is a last request: what waits for it has come to its end. It proves nothing.
const end = "\r\n\r\nGET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

// tidy ends the sessions that were begun, and opens alice's again where it was ended.
func (r *authRig) tidy(begun []string) {
	for _, id := range begun {
		for _, key := range []string{r.alice, r.mallory} {
			r.do("DELETE", "/mcp", "", bearer(key), "Mcp-Session-Id: "+id)
		}
	}
	if r.do("POST", "/mcp", ping, bearer(r.alice), "Mcp-Session-Id: "+r.session).status == 404 {
		r.session = r.do("POST", "/mcp", initBody("2025-03-26"), bearer(r.alice)).header.Get("Mcp-Session-Id")
	}
	r.reached()
}
