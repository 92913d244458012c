package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// nginxConfig takes the user line, the lines of the upstream's servers and the address.
//
// There is one worker, since each would go round by itself, and no keepalive to the
// replicas: every request of a client goes to the next replica, on a new connection.
// max_fails=0: a replica that is down is tried anew by each request, and passed over.
const nginxConfig = `daemon off;
%[1]s
pid nginx.pid;
error_log error.log notice;
worker_processes 1;
worker_shutdown_timeout 30s;
events { worker_connections 8192; }
http {
	log_format routed '$request_method|$status|$upstream_addr|$http_mcp_session_id|$http_x_tag|$uri';
	access_log access.log routed;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	client_max_body_size 64m;
	keepalive_requests 1000000;
	upstream signalbox {
%[2]s	}
	server {
		listen %[3]s;
		location / {
			proxy_pass http://signalbox;
			proxy_http_version 1.1;
			proxy_set_header Host $http_host;
			proxy_buffering off;
			proxy_read_timeout 1h;
			proxy_next_upstream error;
		}
	}
}
`

// Nginx is Debian's nginx as a balancer, round robin.
type Nginx struct {
	URL string

	t        testing.TB
	dir      string
	addr     string
	backends []string
	cmd      *exec.Cmd
	reloads  int
}

// StartNginx spreads requests over the backends until the test ends.
func StartNginx(t testing.TB, backends ...string) *Nginx {
	t.Helper()
	n := &Nginx{t: t, dir: t.TempDir(), addr: freeAddr(t), backends: backends}
	n.URL = "http://" + n.addr
	n.configure(nil)
	path, err := find("nginx")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	n.cmd = exec.Command(path, "-e", "error.log", "-p", n.dir, "-c", filepath.Join(n.dir, "nginx.conf"))
	n.cmd.Stdout, n.cmd.Stderr = &out, &out
	diesWithTest(n.cmd)
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.cmd.Process.Signal(syscall.SIGTERM) // its workers end with it
		n.cmd.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(n.dir, "error.log"))
			t.Logf("nginx: %s%s", out.String(), lastLines(string(log), 20))
		}
	})
	n.await()
	return n
}

func (n *Nginx) configure(without []string) {
	n.t.Helper()
	user, servers := "", ""
	if os.Getuid() == 0 {
		user = "user root;" // else the workers cannot write here
	}
	for _, b := range n.backends {
		down := ""
		if slices.Contains(without, b) {
			down = " down"
		}
		servers += fmt.Sprintf("\t\tserver %s max_fails=0%s;\n", b, down)
	}
	config := fmt.Sprintf(nginxConfig, user, servers, n.addr)
	if err := os.WriteFile(filepath.Join(n.dir, "nginx.conf"), []byte(config), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

func (n *Nginx) await() {
	n.t.Helper()
	Await(n.t, patience, "nginx listens", func() string { return dialable(n.addr) })
}

// Without takes backends out, as a balancer does by their readiness, and all others in.
// It returns when no request goes to them any more, and those under way are over.
func (n *Nginx) Without(backends ...string) {
	n.t.Helper()
	n.configure(backends)
	n.reloads++
	if err := n.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		n.t.Fatal(err)
	}
	Await(n.t, patience, "nginx has its new configuration", func() string {
		log, err := os.ReadFile(filepath.Join(n.dir, "error.log"))
		if err != nil {
			return err.Error()
		}
		if got := strings.Count(string(log), "exited with code 0"); got < n.reloads {
			return fmt.Sprintf("%d of %d reloads", got, n.reloads)
		}
		return ""
	})
}

// Routed is a line of the access log: a request that has ended.
type Routed struct {
	Method, Status, Session, Tag, Path string
	Replica                            string // its address; several, comma between, where one was down
}

// Log is the access log so far.
func (n *Nginx) Log() []Routed {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.dir, "access.log"))
	if err != nil {
		n.t.Fatal(err)
	}
	var all []Routed
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), "|", 6)
		if len(f) == 6 {
			all = append(all, Routed{Method: f[0], Status: f[1], Replica: f[2], Session: f[3], Tag: f[4], Path: f[5]})
		}
	}
	return all
}

// ByTag waits until the requests with these X-Tag headers have ended, and returns their
// lines in that order.
func (n *Nginx) ByTag(tags ...string) []Routed {
	n.t.Helper()
	var found []Routed
	Await(n.t, patience, "the access log has all requests", func() string {
		found = found[:0]
		all := n.Log()
		for _, tag := range tags {
			i := slices.IndexFunc(all, func(r Routed) bool { return r.Tag == tag })
			if i < 0 {
				return "without " + tag
			}
			found = append(found, all[i])
		}
		return ""
	})
	return found
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
