package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
)

// listen binds addr. A loopback address is bound in both families where both
// exist, for a client may resolve localhost to either.
func listen(addr string, log *slog.Logger) ([]net.Listener, error) {
	host, _, _ := net.SplitHostPort(addr)
	if host == "localhost" {
		host, addr = "127.0.0.1", strings.Replace(addr, "localhost", "127.0.0.1", 1)
	}
	first, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	list := []net.Listener{first}
	if host != "127.0.0.1" {
		return list, nil
	}
	_, port, _ := net.SplitHostPort(first.Addr().String())
	second, err := net.Listen("tcp", net.JoinHostPort("::1", port))
	if err != nil {
		log.Debug("not listening on ::1", "err", err)
		return list, nil
	}
	return append(list, second), nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

// announce prints where clients find the servers, and what to paste into their
// configuration.
func announce(w io.Writer, names []string, base string, adminListener net.Listener) {
	type entry struct {
		URL string `json:"url"`
	}
	snippet := make(map[string]entry)
	if len(names) == 1 {
		snippet[names[0]] = entry{base + "/mcp"}
		fmt.Fprintf(w, "signalbox serves %s\n  Streamable HTTP  %s/mcp\n  HTTP+SSE         %s/sse\n", names[0], base, base)
	} else {
		fmt.Fprintf(w, "signalbox serves %d servers\n", len(names))
		for _, name := range names {
			at := base + "/servers/" + name
			snippet[name] = entry{at + "/mcp"}
			fmt.Fprintf(w, "  %s\n    Streamable HTTP  %s/mcp\n    HTTP+SSE         %s/sse\n", name, at, at)
		}
	}
	if adminListener != nil {
		fmt.Fprintf(w, "  metrics          http://%s/metrics\n", adminListener.Addr())
		fmt.Fprintf(w, "  status page      http://%s/status\n", adminListener.Addr())
	}
	text, _ := json.Marshal(map[string]any{"mcpServers": snippet})
	fmt.Fprintf(w, "for a client's configuration:\n  %s\n", text)
}

// newLogger makes the log, whose level may be changed while it is in use.
func newLogger(w io.Writer, level, format string) (*slog.Logger, *slog.LevelVar) {
	now := new(slog.LevelVar)
	_ = now.UnmarshalText([]byte(level)) // an enum of the flag
	opts := &slog.HandlerOptions{Level: now}
	if f, ok := w.(*os.File); format == "auto" && ok && isTerminal(f) {
		format = "text"
	}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, opts)), now
	}
	return slog.New(slog.NewJSONHandler(w, opts)), now
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// lateHandler is a handler that is set after it is in use.
type lateHandler struct{ handler atomic.Pointer[http.Handler] }

func (l *lateHandler) set(h http.Handler) { l.handler.Store(&h) }

func (l *lateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := l.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	http.Error(w, "this replica is starting", http.StatusServiceUnavailable)
}
