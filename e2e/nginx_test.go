package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

const (
	nginxIdle      = 2 * time.Second        // proxy_read_timeout; nginx has 60 s where nobody says otherwise
	nginxKeepalive = 500 * time.Millisecond // of Signalbox behind it
	quietFor       = 5 * time.Second        // much more than nginxIdle
)

// nginxConf is what Debian installs, with one site of a few words: everything that is
// not said about proxying, buffering above all, is as nginx has it. It is one process,
// so that whoever kills it leaves none behind.
const nginxConf = `
daemon off;
master_process off;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 768; }
http {
	sendfile on;
	tcp_nopush on;
	types_hash_max_size 2048;
	include /etc/nginx/mime.types;
	default_type application/octet-stream;
	access_log off;
	gzip on;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	server {
		listen ADDR;
		proxy_read_timeout IDLE;
		location / { proxy_pass http://BACKEND; }
		location /team/a/ {
			proxy_pass http://BACKEND/;
			proxy_set_header X-Forwarded-Prefix /team/a;
		}
	}
}
`

// startNginx runs nginx in front of a backend, HOST:PORT, and returns its URL.
func startNginx(t *testing.T, backend string) string {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		path = "/usr/sbin/nginx" // not on the path of users
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no nginx; hint: apt-get install nginx-light")
		}
		t.Skip("there is no nginx; hint: apt-get install nginx-light")
	}
	dir, addr := t.TempDir(), freeAddr(t)
	conf := strings.NewReplacer("ADDR", addr, "BACKEND", backend, "IDLE", fmt.Sprintf("%ds", int(nginxIdle.Seconds()))).Replace(nginxConf)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return startProgram(t, addr, nil, path, "-p", dir, "-c", file, "-e", "stderr").url()
}

func backendOf(b *box.Box) string { return strings.TrimPrefix(b.URL, "http://") }

// TestBehindNginx has nginx between clients and Signalbox.
func TestBehindNginx(t *testing.T) {
	b := box.Start(t, []string{"--trusted-proxy", "127.0.0.1", "--keepalive", nginxKeepalive.String()}, fakeServer(t)...)
	c := rawclient.New(startNginx(t, backendOf(b)))
	t.Cleanup(c.Close)
	for name, open := range map[string]func(rawclient.Options) (rawclient.Session, error){
		"streamable": func(o rawclient.Options) (rawclient.Session, error) {
			return c.StreamableAt(t.Context(), "/team/a/mcp", o)
		},
		"legacy": func(o rawclient.Options) (rawclient.Session, error) {
			s, err := c.LegacyAt(t.Context(), "/team/a/sse", o)
			if err == nil && !strings.HasPrefix(s.Endpoint, "/team/a/messages?session_id=") {
				t.Errorf("the endpoint event has %q", s.Endpoint)
			}
			return s, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages := make(chan rawclient.Message, 100)
			s, err := open(rawclient.Options{OnMessage: func(m rawclient.Message) { messages <- m }})
			if err != nil {
				t.Fatal(err)
			}
			checkUnbuffered(t, s, messages)
			checkQuiet(t, s, messages)
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// checkUnbuffered: what the server sends during a call comes during the call.
func checkUnbuffered(t *testing.T, s rawclient.Session, messages <-chan rawclient.Message) {
	t.Helper()
	ended := start(t, s, `"held"`, "hold", `{"key":"k"}`)
	if m := receive(t, messages); m.Method != "notifications/progress" {
		t.Errorf("got %s", m.Raw)
	}
	mustCall(t, s, `"release"`, "release", `{"key":"k"}`)
	if m := receive(t, ended); m.Result == nil {
		t.Errorf("the held call ended by %s", m.Raw)
	}

	const apart = 400
	ended = start(t, s, `"counting"`, "progress", fmt.Sprintf(`{"n":4,"ms":%d}`, apart))
	receive(t, messages)
	first := time.Now()
	for range 3 {
		receive(t, messages)
	}
	receive(t, ended)
	if took := time.Since(first); took < 2*apart*time.Millisecond {
		t.Errorf("four notifications, %d ms apart, came within %v", apart, took)
	}
}

// checkQuiet: neither a call nor the session's own stream is cut off because nothing is
// said on it.
func checkQuiet(t *testing.T, s rawclient.Session, messages <-chan rawclient.Message) {
	t.Helper()
	updates, done := ownStream(t, s, messages)
	defer done()
	mustCall(t, s, `"quiet"`, "delay", fmt.Sprintf(`{"ms":%d}`, quietFor.Milliseconds()))
	mustCall(t, s, `"then"`, "notify", `{"method":"notifications/tools/list_changed"}`)
	if m := receive(t, updates); m.Method != "notifications/tools/list_changed" {
		t.Errorf("after the silence came %s", m.Raw)
	}
}

// start makes a call with its id as progress token and does not wait for its end.
func start(t *testing.T, s rawclient.Session, id, tool, arguments string) <-chan rawclient.Message {
	ended := make(chan rawclient.Message, 1)
	go func() {
		m, err := s.Call(t.Context(), id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":%s}}`, tool, arguments, id))
		if err != nil {
			t.Errorf("%s: %v", tool, err)
		}
		ended <- m
	}()
	return ended
}

// mustCall makes a call that has a result.
func mustCall(t *testing.T, s rawclient.Session, id, tool, arguments string) {
	t.Helper()
	if m := receive(t, start(t, s, id, tool, arguments)); m.Result == nil {
		t.Errorf("%s: %s", tool, m.Raw)
	}
}

// TestForwardedPrefixOfAStranger: without --trusted-proxy anybody may have sent it.
func TestForwardedPrefixOfAStranger(t *testing.T) {
	b := box.Start(t, []string{"--trusted-proxy", "10.0.0.0/8"}, fakeServer(t)...)
	for name, url := range map[string]string{"nginx": startNginx(t, backendOf(b)), "a client": b.URL} {
		c := rawclient.New(url)
		defer c.Close()
		path := "/sse"
		if name == "nginx" {
			path = "/team/a/sse"
		}
		c.Header = http.Header{"X-Forwarded-Prefix": {"/team/a"}}
		s, err := c.LegacyAt(t.Context(), path, rawclient.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(s.Endpoint, "/messages?") {
			t.Errorf("%s: the endpoint event has %q", name, s.Endpoint)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestServerBehindNginx has nginx between Signalbox and servers. The TypeScript SDK tells
// it not to buffer; from the Go SDK all comes in the end.
func TestServerBehindNginx(t *testing.T) {
	for name, server := range map[string]*program{"go": sdkServer(t), "typescript": typescriptServer(t)} {
		b := box.StartURL(t, startNginx(t, server.addr)+"/mcp")
		c := rawclient.New(b.URL)
		defer c.Close()
		for transport, open := range map[string]func(rawclient.Options) (rawclient.Session, error){
			"streamable": func(o rawclient.Options) (rawclient.Session, error) { return c.Streamable(t.Context(), o) },
			"legacy":     func(o rawclient.Options) (rawclient.Session, error) { return c.Legacy(t.Context(), o) },
		} {
			t.Run(name+", "+transport, func(t *testing.T) {
				messages := make(chan rawclient.Message, 100)
				s, err := open(rawclient.Options{OnMessage: func(m rawclient.Message) { messages <- m }})
				if err != nil {
					t.Fatal(err)
				}
				if name == "go" {
					ended := start(t, s, "1", "progress", `{"n":3}`)
					for range 3 {
						if m := receive(t, messages); m.Method != "notifications/progress" {
							t.Errorf("got %s", m.Raw)
						}
					}
					receive(t, ended)
				} else {
					checkUnbuffered(t, s, messages)
					subscribe(t, s, messages)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
