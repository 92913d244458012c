package httpd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// echo answers with the body.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
})

func TestPipelining(t *testing.T) {
	c := serveTCP(t, Config{Handler: echo}).dial()
	var all strings.Builder
	for i := range 100 {
		fmt.Fprintf(&all, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n%04d", i)
	}
	c.send(all.String())
	for i := range 100 {
		if _, body := c.answer(); body != fmt.Sprintf("%04d", i) {
			t.Fatalf("answer %d is %q", i, body)
		}
	}
}

func TestContinue(t *testing.T) {
	var read bool
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if read = r.URL.Path == "/read"; read {
			echo(w, r)
		}
	})})
	c := r.dial()
	for range 2 {
		c.send("POST /read HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
		if line, err := c.in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatal(line, err)
		}
		_, _ = c.in.Discard(2)
		c.send("ok")
		if res, body := c.answer(); body != "ok" || res.Close {
			t.Error(body, res.Close)
		}
	}
	// Nobody wants the body: no 100, and the client need not send it.
	c.send("POST /refuse HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	if res, _ := c.answer(); res.StatusCode != 200 || !res.Close {
		t.Error(res.StatusCode, res.Close)
	}
	c.ended()
}

// Each handler keeps its headers. A later request on the connection must not
// change them.
func TestKeptHeaders(t *testing.T) {
	var kept []http.Header
	var urls []string
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		kept = append(kept, r.Header)
		urls = append(urls, r.RequestURI)
	})})
	c := r.dial()
	for i := range 20 {
		c.send(fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: h\r\nx-n: %d\r\n\r\n", i, i))
		c.answer()
	}
	for i, h := range kept {
		if want := fmt.Sprint(i); h.Get("X-N") != want || urls[i] != "/"+want || len(h) != 1 {
			t.Errorf("%d: %v %s", i, h, urls[i])
		}
	}
}

// A client that is refused while it sends a large body can read why.
func TestRefusedUpload(t *testing.T) {
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	})})
	for range 10 {
		c := r.dial()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\n")
			_, _ = c.Write(make([]byte, 8_000_000))
		}()
		if res, body := c.answer(); res.StatusCode != 413 || body != "too large\n" || !res.Close {
			t.Errorf("%d %q %v", res.StatusCode, body, res.Close)
		}
		c.Close()
		<-sent
	}
}

// What the handler left of the body is not taken for a request.
func TestUnreadBody(t *testing.T) {
	var seen []string
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path)
		if r.URL.Path == "/part" {
			_, _ = r.Body.Read(make([]byte, 3))
		}
	})})
	c := r.dial()
	smuggled := strings.Repeat("GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n", 1000)
	for _, path := range []string{"/none", "/part"} {
		c.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", path, len(smuggled), smuggled))
		if res, _ := c.answer(); res.Close {
			t.Error("closed")
		}
		c.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", path, len(smuggled), smuggled))
		if res, _ := c.answer(); res.Close {
			t.Error("closed")
		}
	}
	if got := strings.Join(seen, " "); got != "/none /none /part /part" {
		t.Error(got)
	}
}

func TestPanics(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	r := serveTCP(t, Config{Log: slog.New(slog.NewTextHandler(&lockedWriter{w: &log, mu: &mu}, nil)), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exit":
			runtime.Goexit()
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/streaming":
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}
		panic("the reason")
	})})
	for _, path := range []string{"/exit", "/abort", "/", "/streaming"} {
		c := r.dial()
		c.send("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n")
		out, _ := io.ReadAll(c.in)
		if s := string(out); path != "/streaming" && s != "" || strings.HasSuffix(s, "0\r\n\r\n") {
			t.Errorf("%s: %q", path, s)
		}
		mu.Lock()
		if logged := log.String(); (path == "/" || path == "/streaming") != (strings.Contains(logged, "the reason") && strings.Contains(logged, "TestPanics")) {
			t.Errorf("%s: log %q", path, logged)
		}
		log.Reset()
		mu.Unlock()
	}
}

type lockedWriter struct {
	w  io.Writer
	mu *sync.Mutex
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func TestMistakesAreLogged(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	r := serveTCP(t, Config{Log: slog.New(slog.NewTextHandler(&lockedWriter{w: &log, mu: &mu}, nil)), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "many")
		w.WriteHeader(200)
		w.WriteHeader(500)
		_, _ = io.WriteString(w, "hello")
	})})
	c := r.dial()
	c.send(get)
	if res, body := c.answer(); res.ContentLength != 5 || body != "hello" {
		t.Error(res.ContentLength, body)
	}
	mu.Lock()
	defer mu.Unlock()
	if s := log.String(); !strings.Contains(s, "superfluous") || !strings.Contains(s, "conn_test.go") || !strings.Contains(s, "Content-Length") {
		t.Error(s)
	}
}

// A handler that has returned can do no harm to the connection.
func TestUseAfterReturn(t *testing.T) {
	var w1 http.ResponseWriter
	var r1 *http.Request
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keep" {
			w1, r1 = w, r
			return
		}
		w1.WriteHeader(500)
		w1.Header().Set("X", "y")
		if _, err := io.WriteString(w1, "late"); err == nil {
			t.Error("late write")
		}
		control := http.NewResponseController(w1)
		if control.Flush() == nil || control.SetReadDeadline(time.Now()) == nil || control.SetWriteDeadline(time.Now()) == nil {
			t.Error("late use")
		}
		if _, err := r1.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Error("late read:", err)
		}
		if !errors.Is(r1.Context().Err(), context.Canceled) {
			t.Error("its context is not over")
		}
		<-r1.Context().Done()
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})})
	c := r.dial()
	c.send("POST /keep HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab")
	c.answer()
	c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\ncd")
	if res, body := c.answer(); res.StatusCode != 200 || body != "cd" || res.Header.Get("X") != "" {
		t.Error(res.StatusCode, body)
	}
}

// One that reads on in another goroutine neither.
func TestReaderLeftBehind(t *testing.T) {
	read := make(chan error, 1)
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := make(chan struct{})
		go func() {
			close(begun)
			_, err := io.Copy(io.Discard, r.Body)
			read <- err
		}()
		<-begun
		_, _ = io.WriteString(w, "done")
	})})
	c := r.dial()
	c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")
	if res, body := c.answer(); body != "done" || !res.Close {
		t.Error(body, res.Close)
	}
	c.Close()
	if err := <-read; err == nil {
		t.Error("it read to the end")
	}
}

// Many clients at once, some calls long enough to be watched.
func TestManyClients(t *testing.T) {
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		wait := time.Duration(len(body)%7) * sweepEvery / 2
		select {
		case <-r.Context().Done():
			t.Error("a client seems gone")
		case <-time.After(wait):
		}
		for part := range bytes.SplitSeq(body, []byte("7")) {
			_, _ = w.Write(part)
			if len(body)%3 == 0 {
				w.(http.Flusher).Flush()
			}
		}
	})})
	tr := &http.Transport{MaxIdleConnsPerHost: 8}
	defer tr.CloseIdleConnections()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				sent := strings.Repeat(fmt.Sprint(i, "7", j), 1+(i*j*j*37)%5000)
				res, err := (&http.Client{Transport: tr}).Post("http://"+r.l.Addr().String(), "text/plain", strings.NewReader(sent))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(res.Body)
				res.Body.Close()
				if want := strings.ReplaceAll(sent, "7", ""); err != nil || string(got) != want {
					t.Errorf("%d bytes, %v, want %d", len(got), err, len(want))
				}
			}
		})
	}
	wg.Wait()
}
