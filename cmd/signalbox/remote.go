package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/config"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
	"github.com/signalbox-mcp/signalbox/internal/upstream/remote"
)

// remoteFlags say how an HTTP server is reached.
type remoteFlags struct {
	Header        []string `sep:"none" placeholder:"K: V" help:"Header for an HTTP server; $${ENV} expands; repeatable."`
	HeaderFile    []string `type:"path" placeholder:"FILE" help:"File with headers for an HTTP server, one in a line; repeatable."`
	ForwardHeader []string `placeholder:"NAME" help:"Header of the client's request to pass on to an HTTP server; repeatable."`
}

// limitFlags bound one message and one call.
type limitFlags struct {
	StartTimeout    time.Duration `default:"2m" help:"Until the server's answer to initialize."`
	CallTimeout     time.Duration `default:"10m" help:"For a call without answer and progress."`
	CallLimit       time.Duration `default:"2h" help:"For one call in all."`
	QuestionTimeout time.Duration `default:"10m" help:"For a client's answer to what a server of the other protocol era asks."`
	MaxMessage      size          `default:"64MiB" help:"One message, in either direction."`
}

func (l *limitFlags) check() error {
	if l.MaxMessage < 1<<10 || l.MaxMessage > maxMessageCap {
		return fmt.Errorf("--max-message: must be between 1KiB and 2GiB")
	}
	for name, d := range map[string]time.Duration{"--start-timeout": l.StartTimeout, "--call-timeout": l.CallTimeout, "--call-limit": l.CallLimit, "--question-timeout": l.QuestionTimeout} {
		if d <= 0 {
			return fmt.Errorf("%s: must be more than 0", name)
		}
	}
	if l.CallTimeout > l.CallLimit {
		return fmt.Errorf("--call-timeout %s and --call-limit %s contradict each other: no call lives longer than the limit", l.CallTimeout, l.CallLimit)
	}
	return nil
}

func isURL(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// serverURL reads the URL of a server.
func serverURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || !isURL(s):
		return nil, fmt.Errorf("the server's URL is no http or https URL")
	case u.User != nil:
		return nil, fmt.Errorf("the server's URL holds a password; send it by --header \"Authorization: ...\"")
	case u.Fragment != "":
		return nil, fmt.Errorf("the server's URL has a fragment (#...), which no server ever sees")
	}
	return u, nil
}

// headers reads --header and --header-file, and checks --forward-header. Errors do not repeat
// values.
func (f *remoteFlags) headers() (http.Header, error) {
	h := make(http.Header)
	for _, kv := range f.Header {
		if err := addHeader(h, "--header", kv); err != nil {
			return nil, err
		}
	}
	for _, path := range f.HeaderFile {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("--header-file: %w", err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			if err := addHeader(h, fmt.Sprintf("--header-file %s:%d", path, i+1), line); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range f.ForwardHeader {
		if wrong := config.CheckHeader(name, ""); wrong != "" {
			return nil, fmt.Errorf("--forward-header %s: %s", name, wrong)
		}
	}
	return h, nil
}

// addHeader adds "Name: value"; from says in errors where that stands.
func addHeader(h http.Header, from, kv string) error {
	name, value, ok := strings.Cut(kv, ":")
	name = strings.TrimSpace(name)
	if !ok || name == "" {
		return fmt.Errorf("%s: write \"Name: value\"", from)
	}
	value, err := config.Expand(strings.TrimSpace(value), os.LookupEnv)
	if err != nil {
		return fmt.Errorf("%s %s: %w", from, name, err)
	}
	if wrong := config.CheckHeader(name, value); wrong != "" {
		return fmt.Errorf("%s %s: %s", from, name, wrong)
	}
	h.Add(name, value)
	return nil
}

// newRemote makes the server behind a URL, whichever transport it turns out to
// speak.
func newRemote(cfg remote.Config, metrics *process.Metrics, log *slog.Logger) *remote.Server {
	var server *remote.Server
	cfg.Version, cfg.Log = versionText(), log
	cfg.Dropped = func(reason string, method mcp.Method) {
		metrics.Drop(cfg.Name, process.DropReason(reason), method.String())
	}
	cfg.Legacy = process.New(process.Config{
		Name: cfg.Name, What: "the server's event stream",
		Start: func(h child.Handler, init upstream.Request) (process.Pipe, error) {
			p, err := server.OpenPipe(h, init.Header)
			if err != nil {
				return nil, err
			}
			return p, nil
		},
		StartTimeout: cfg.StartTimeout, CallTimeout: cfg.CallTimeout, CallLimit: cfg.CallLimit,
		MaxMessage: cfg.MaxMessage, Version: cfg.Version, Log: log, Metrics: metrics,
	})
	server = remote.New(cfg)
	return server
}

// hostName is a name for the one server of a URL.
func hostName(u *url.URL) string { return serverName([]string{u.Hostname()}) }
