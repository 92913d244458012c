package front

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"
)

// flood sends requests over one connection, and returns how often each status came.
func (r *authRig) flood(n int, request func(i int) string) map[int]int {
	r.t.Helper()
	conn, err := r.listen.dial(r.t.Context(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	in, seen := bufio.NewReader(conn), make(map[int]int)
	for i := range n {
		if _, err := io.WriteString(conn, request(i)); err != nil {
			r.t.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			r.t.Fatal(err)
		}
		seen[res.StatusCode]++
	}
	return seen
}

// TestUnauthenticatedFlood: 10,000 times initialize from nobody costs nothing that
// stays: no session, no byte for the server, no memory.
func TestUnauthenticatedFlood(t *testing.T) {
	const n = 10_000
	inAuthBubble(t, setup{}, func(t *testing.T, r *authRig) {
		r.ready()
		for name, headers := range map[string]func(i int) []string{
			"without a credential": func(int) []string { return nil },
			"with unknown keys":    func(i int) []string { return []string{fmt.Sprintf("X-API-Key: sbx_%d", i)} },
			"with invented tokens": func(i int) []string {
				return []string{fmt.Sprintf("Authorization: Bearer e30.e30.%d", i)}
			},
			"with expired tokens": func(i int) []string {
				return []string{"Authorization: Bearer " + r.issuer.Token(map[string]any{"exp": i + 1})}
			},
		} {
			n := n
			counts := name != "without a credential" // against the address
			if name == "with expired tokens" {       // each is signed, which takes its time
				n, counts = 1000, false
			}
			before := heap()
			seen := r.flood(n, func(i int) string { return keep("POST /mcp", initBody(rev), headers(i)...) })
			if grown := heap() - before; grown > 4<<20 {
				t.Errorf("%s: %d bytes more are in use", name, grown)
			}
			if seen[401]+seen[429] != n || counts && seen[429] < n/2 {
				t.Errorf("%s: %v", name, seen)
			}
			r.settle()
			if got := r.reached(); len(got) > 0 {
				t.Errorf("%s: the server got %d messages, %s first", name, len(got), got[0])
			}
		}
		r.sessionsAreWell(t) // also from the address that is limited
	})
}

// heap is the memory in use, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
