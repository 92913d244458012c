package cluster

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func request(t *testing.T, method, url, home string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("To", home)
	return req
}

func do(t *testing.T, req *http.Request) *http.Response {
	t.Helper()
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func TestForwardKeepsTheRequest(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got := make(chan *http.Request, 1)
	home := g.replica(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		got <- r
		w.Header()["X-Answer"] = []string{"a", "b"}
		w.Header().Set("Signalbox-Peer-Secret", "not for clients")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "answer")
	})
	front := g.replica(nil)
	principal := "iss\x00|\xff\u00e9\nsub"
	req := request(t, http.MethodPut, front.public.URL+"/servers/a%2Fb/mcp?x=%zz&y=1;2", home.ID(), strings.NewReader("question"))
	req.Host = "public.example:99"
	for name, values := range map[string][]string{
		"Mcp-Session-Id": {"s1"}, "X-Multi": {"1", "2"}, "Authorization": {"Bearer t"}, "Accept": {"text/event-stream"},
		"Connection": {"X-Hop"}, "X-Hop": {"1"}, "Keep-Alive": {"5"}, "Te": {"trailers"}, "Upgrade": {"x"}, "Proxy-Authorization": {"p"},
		"Signalbox-Peer-Principal": {"Zm9yZ2Vk"}, "Signalbox-Peer-Hop": {"1"}, "Signalbox-Peer-Other": {"1"},
	} {
		req.Header[name] = values
	}
	// What the client says of its principal is stripped; that of the replica is
	// base64url of any bytes.
	req.Header.Set("As", "plain")
	front.principal.Store(&principal)
	res := do(t, req)
	r := <-got
	if who, ok := FromPeer(r.Context()); !ok || who != principal {
		t.Errorf("principal %q, %v, want %q", who, ok, principal)
	}
	if r.Method != http.MethodPut || r.RequestURI != "/servers/a%2Fb/mcp?x=%zz&y=1;2" || r.Host != "public.example:99" {
		t.Errorf("home got %s %s of host %s", r.Method, r.RequestURI, r.Host)
	}
	if !strings.HasPrefix(r.RemoteAddr, "127.0.0.1:") || r.RemoteAddr == front.peer.Addr().String() {
		t.Errorf("remote address %q", r.RemoteAddr)
	}
	for _, name := range []string{"Connection", "X-Hop", "Keep-Alive", "Te", "Upgrade", "Proxy-Authorization", "User-Agent-Of-Go"} {
		if r.Header[name] != nil {
			t.Errorf("%s: %q reached home", name, r.Header[name])
		}
	}
	for name := range r.Header {
		if strings.HasPrefix(name, peerPrefix) {
			t.Errorf("the handler sees %s", name)
		}
	}
	for name, want := range map[string][]string{"Mcp-Session-Id": {"s1"}, "X-Multi": {"1", "2"}, "Authorization": {"Bearer t"}, "Accept": {"text/event-stream"}} {
		if fmt.Sprint(r.Header[name]) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", name, r.Header[name], want)
		}
	}
	if body, _ := io.ReadAll(r.Body); string(body) != "question" || r.ContentLength != 8 {
		t.Errorf("home read %q, length %d", body, r.ContentLength)
	}
	answer, err := io.ReadAll(res.Body)
	if err != nil || string(answer) != "answer" || res.StatusCode != http.StatusTeapot || res.ContentLength != 6 {
		t.Errorf("client got %d %q (length %d), %v", res.StatusCode, answer, res.ContentLength, err)
	}
	if fmt.Sprint(res.Header["X-Answer"]) != "[a b]" || res.Header["Signalbox-Peer-Secret"] != nil {
		t.Errorf("client got headers %v", res.Header)
	}
}

func TestEventsArriveOneByOneWhileTheBodyIsOpen(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	home := g.replica(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", lines.Text())
			_ = http.NewResponseController(w).Flush()
		}
	})
	front := g.replica(nil)
	body, write := io.Pipe()
	res := do(t, request(t, http.MethodPost, front.public.URL, home.ID(), body)) // headers came before any event
	events := bufio.NewReader(res.Body)
	for i := range 20 {
		// Each is sent only after the one before has arrived.
		_, _ = fmt.Fprintf(write, "%d\n", i)
		line, err := events.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		_, _ = events.ReadString('\n')
	}
	_ = write.Close()
	if rest, err := io.ReadAll(events); err != nil || len(rest) != 0 {
		t.Errorf("at the end: %q, %v", rest, err)
	}
}

func TestLargeBodiesBothWays(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	home := g.replica(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = w.Write(b)
	})
	front := g.replica(nil)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	copy(big[5<<17:], "in the middle")
	for _, known := range []bool{true, false} {
		var body io.Reader = bytes.NewReader(big)
		if !known {
			big = big[:1<<20]
			body = struct{ io.Reader }{bytes.NewReader(big)} // chunked
		}
		res := do(t, request(t, http.MethodPost, front.public.URL, home.ID(), body))
		got, err := io.ReadAll(res.Body)
		if err != nil || sha256.Sum256(got) != sha256.Sum256(big) {
			t.Errorf("length known %v: %d bytes came back, %v", known, len(got), err)
		}
	}
}

func TestManyAtOnceOverFewConnections(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	release := make(chan struct{})
	arrived := make(chan struct{}, 3000)
	home := g.replica(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		_, _ = io.Copy(w, r.Body)
	})
	front := g.replica(nil)
	const many = maxStreams + 200 // one connection does not do
	done := make(chan error, many)
	for i := range many {
		go func() {
			w := &recorder{header: make(http.Header)}
			r, _ := http.NewRequest(http.MethodPost, "/mcp", strings.NewReader(fmt.Sprint("body ", i)))
			err := front.Forward(w, r, home.ID(), "p", strings.NewReader(fmt.Sprint("body ", i)))
			if got := w.body.String(); err == nil && got != fmt.Sprint("body ", i) {
				err = fmt.Errorf("request %d got %q", i, got)
			}
			done <- err
		}()
	}
	for range many {
		<-arrived
	}
	close(release)
	for range many {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	p := front.poolOf(registration{id: home.ID()})
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) != 2 {
		t.Errorf("%d connections for %d requests, want 2", len(p.conns), many)
	}
}

func TestCancelReachesTheHome(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	began, cancelled := make(chan struct{}), make(chan struct{})
	home := g.replica(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(cancelled)
	})
	front := g.replica(nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	_, err := http.DefaultTransport.RoundTrip(request(t, http.MethodGet, front.public.URL, home.ID(), nil).WithContext(ctx))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the client sees %v", err)
	}
	<-cancelled
	if err := <-front.errs; !errors.Is(err, ErrClient) {
		t.Errorf("Forward returned %v, want ErrClient", err)
	}
}

func TestEarlyAnswerLeavesTheBodyAlone(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	home := g.replica(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	})
	front := g.replica(nil)
	body, write := io.Pipe()
	defer write.Close()
	go func() { _, _ = write.Write([]byte("the beginning")) }()
	res := do(t, request(t, http.MethodPost, front.public.URL, home.ID(), body)) // whose rest never comes
	if got, err := io.ReadAll(res.Body); res.StatusCode != http.StatusRequestEntityTooLarge || string(got) != "too large\n" || err != nil {
		t.Errorf("client got %d %q, %v", res.StatusCode, got, err)
	}
}

func TestBodyIsNotTouchedAfterForward(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	home := g.replica(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	front := g.replica(nil)
	for range 10 {
		body := &watchedBody{left: 2 << 20}
		r, _ := http.NewRequest(http.MethodPost, "/mcp", nil)
		r.ContentLength = -1
		if err := front.Forward(&recorder{header: make(http.Header)}, r, home.ID(), "p", body); err != nil {
			t.Fatal(err)
		}
		body.over.Store(true)
		body.buf = nil // a race with a Read shows under -race
	}
}

func TestBodyErrorsComeBackAsTheyAre(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	home := g.replica(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	front := g.replica(nil)
	mine := errors.New("above the limit")
	r, _ := http.NewRequest(http.MethodPost, "/mcp", nil)
	r.ContentLength = -1
	w := &recorder{header: make(http.Header)}
	err := front.Forward(w, r, home.ID(), "p", io.MultiReader(strings.NewReader("begin"), failing{mine}))
	if !errors.Is(err, mine) || w.status != 0 {
		t.Errorf("error %v, status %d", err, w.status)
	}
}

func TestForwardedOnceOnly(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	second := make(chan error, 1)
	var home *replica
	third := g.replica(func(http.ResponseWriter, *http.Request) { t.Error("forwarded twice") })
	home = g.replica(func(w http.ResponseWriter, r *http.Request) {
		err := home.Forward(w, r, third.ID(), "p", nil)
		w.WriteHeader(http.StatusServiceUnavailable)
		second <- err
	})
	front := g.replica(nil)
	res := do(t, request(t, http.MethodGet, front.public.URL, home.ID(), nil))
	if err := <-second; !errors.Is(err, ErrLoop) || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("second hop: %v, client got %d", err, res.StatusCode)
	}
	if err := front.Forward(&recorder{header: make(http.Header)}, request(t, http.MethodGet, "/", "", nil), front.ID(), "p", nil); !errors.Is(err, ErrLoop) {
		t.Errorf("to itself: %v, want ErrLoop", err)
	}
	if n := counted(t, front.metrics.forwards, "ok"); n != 1 {
		t.Errorf("%v forwards counted as ok, want 1", n)
	}
}

func TestLeaveIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	began, release := make(chan struct{}), make(chan struct{})
	home := g.replica(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-release
		_, _ = io.WriteString(w, "done")
	})
	front := g.replica(nil)
	g.settle(front)
	left := make(chan struct{})
	go func() {
		<-began
		go func() {
			eventually(t, "the registration is gone", func() bool { _, err := g.registry.Get(t.Context(), home.ID()); return err != nil })
			close(release)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		home.Leave(ctx)
		home.Leave(ctx)
		close(left)
	}()
	res := do(t, request(t, http.MethodGet, front.public.URL, home.ID(), nil))
	if b, err := io.ReadAll(res.Body); string(b) != "done" || err != nil {
		t.Errorf("what was in flight got %q, %v", b, err)
	}
	<-left
	eventually(t, "it is gone", func() bool { alive, err := front.Alive(t.Context(), home.ID()); return !alive && err == nil })
	if err := front.Forward(&recorder{header: make(http.Header)}, request(t, http.MethodGet, "/", "", nil), home.ID(), "p", nil); !errors.Is(err, ErrGone) {
		t.Errorf("forwarding gives %v, want ErrGone", err)
	}
}
