package main

import (
	"path/filepath"
	"strconv"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/load"
)

// target is one program that clients talk to.
type target struct {
	name string
	npm  bool   // a peer from the folder npm
	mcp  string // path of Streamable HTTP, or empty
	sse  string // path of HTTP+SSE, or empty
	argv func(l *lab, port int) ([]string, error)
}

func (t *target) endpoint(port int) load.Endpoint {
	return load.Endpoint{Addr: "127.0.0.1:" + strconv.Itoa(port), MCP: t.mcp, SSE: t.sse}
}

// grace is how long the program has to end by itself.
func (t *target) grace() time.Duration {
	if t.npm {
		return time.Second
	}
	return 10 * time.Second
}

// targets are all contestants.
type targets struct {
	direct, shared, perSession            *target
	superStateful, superDefault, mcpProxy *target
}

func newTargets() targets {
	return targets{
		direct: &target{name: "direct", mcp: "/mcp", argv: func(l *lab, port int) ([]string, error) {
			return []string{l.bin("directserver"), "-listen", "127.0.0.1:" + strconv.Itoa(port)}, nil
		}},
		shared:     signalbox("signalbox", "shared"),
		perSession: signalbox("signalbox", "session"),
		superStateful: &target{name: "supergateway --stateful", npm: true, mcp: "/mcp", argv: func(l *lab, port int) ([]string, error) {
			return []string{l.npm("supergateway"), "--stdio", l.bin("echoserver"), "--outputTransport", "streamableHttp",
				"--stateful", "--port", strconv.Itoa(port)}, nil
		}},
		superDefault: &target{name: "supergateway", npm: true, sse: "/sse", argv: func(l *lab, port int) ([]string, error) {
			return []string{l.npm("supergateway"), "--stdio", l.bin("echoserver"), "--port", strconv.Itoa(port)}, nil
		}},
		mcpProxy: &target{name: "mcp-proxy", npm: true, mcp: "/mcp", sse: "/sse", argv: func(l *lab, port int) ([]string, error) {
			return []string{l.npm("mcp-proxy"), "--port", strconv.Itoa(port), "--", l.bin("echoserver")}, nil
		}},
	}
}

// signalbox is the default binary with only the limits raised, so that the number of sessions
// is the benchmark's choice.
func signalbox(name, isolation string) *target {
	return &target{name: name, mcp: "/mcp", sse: "/sse", argv: func(l *lab, port int) ([]string, error) {
		admin, err := l.freePort()
		if err != nil {
			return nil, err
		}
		return []string{l.bin("signalbox"), "serve", "--listen", "127.0.0.1:" + strconv.Itoa(port),
			"--admin-listen", "127.0.0.1:" + strconv.Itoa(admin), "--isolation", isolation,
			"--max-sessions", "100000", "--max-processes", "1000", "--", l.bin("echoserver")}, nil
	}}
}

// bin is a program that prepare built.
func (l *lab) bin(name string) string {
	if name == "signalbox" && l.opts.binary != "" {
		return l.opts.binary
	}
	return filepath.Join(l.dir, name)
}

// npm is a peer's command.
func (l *lab) npm(name string) string { return filepath.Join("npm", "node_modules", ".bin", name) }
