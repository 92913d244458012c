package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/load"
)

// target is one program that clients talk to.
type target struct {
	name   string
	npm    bool    // a peer from the folder npm
	needs  string  // program that the machine must have, or empty
	mcp    string  // path of Streamable HTTP, or empty
	sse    string  // path of HTTP+SSE, or empty
	behind *target // HTTP server that it stands before and that starts first, or nil
	argv   func(l *lab, at place) ([]string, error)
}

// place is where a target that starts finds its own ports and the server behind it.
type place struct {
	port, admin int
	behind      string // host:port
}

func (p place) listen() string { return loopback(p.port) }

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

func (t *target) endpoint(port int) load.Endpoint {
	return load.Endpoint{Addr: loopback(port), MCP: t.mcp, SSE: t.sse}
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

	remote, reverseProxy, nginx, nginxStream *target // before an HTTP server
	remoteRedis                              *target // with its sessions in Redis

	modern, legacy             *target // before a server of either era
	modernShared, legacyShared *target // the same, one process for all

	quiet, watched, remoteQuiet, remoteWatched *target // without logs and metrics, and with them
}

func newTargets() targets {
	direct := &target{name: "direct", mcp: "/mcp", argv: func(l *lab, at place) ([]string, error) {
		return []string{l.bin("directserver"), "-listen", at.listen()}, nil
	}}
	remote := signalbox(httpServer)
	remote.behind = direct
	remoteRedis := signalbox(func(l *lab, at place) []string {
		return []string{"--store", "redis://" + l.redisAddr + "/0", "http://" + at.behind + "/mcp"}
	})
	remoteRedis.name, remoteRedis.needs, remoteRedis.behind = "signalbox, Redis", "redis-server", direct
	t := targets{
		direct:     direct,
		shared:     signalbox(stdioServer("shared")),
		perSession: signalbox(stdioServer("session")),
		superStateful: &target{name: "supergateway --stateful", npm: true, mcp: "/mcp", argv: func(l *lab, at place) ([]string, error) {
			return []string{l.npm("supergateway"), "--stdio", l.bin("echoserver"), "--outputTransport", "streamableHttp",
				"--stateful", "--port", strconv.Itoa(at.port)}, nil
		}},
		superDefault: &target{name: "supergateway", npm: true, sse: "/sse", argv: func(l *lab, at place) ([]string, error) {
			return []string{l.npm("supergateway"), "--stdio", l.bin("echoserver"), "--port", strconv.Itoa(at.port)}, nil
		}},
		mcpProxy: &target{name: "mcp-proxy", npm: true, mcp: "/mcp", sse: "/sse", argv: func(l *lab, at place) ([]string, error) {
			return []string{l.npm("mcp-proxy"), "--port", strconv.Itoa(at.port), "--", l.bin("echoserver")}, nil
		}},
		remote: remote, remoteRedis: remoteRedis,
		reverseProxy: &target{name: "ReverseProxy", mcp: "/mcp", behind: direct, argv: func(l *lab, at place) ([]string, error) {
			return []string{l.bin("reverseproxy"), "-listen", at.listen(), "-to", "http://" + at.behind}, nil
		}},
		nginx:       nginx(direct, "on"),
		nginxStream: nginx(direct, "off"),
	}
	t.eraTargets()
	t.watchedTargets()
	return t
}

// signalbox is the default binary with only the limits raised, so that the number of sessions
// is the benchmark's choice. server gives the arguments that say what is behind it.
func signalbox(server func(l *lab, at place) []string) *target {
	return serving("signalbox", func(at place) []string { return []string{"--admin-listen", loopback(at.admin)} }, server)
}

// serving is signalbox under a name, with flags for what operators see.
func serving(name string, operators func(at place) []string, server func(l *lab, at place) []string) *target {
	return &target{name: name, mcp: "/mcp", sse: "/sse", argv: func(l *lab, at place) ([]string, error) {
		return slices.Concat([]string{l.bin("signalbox"), "serve", "--listen", at.listen(), "--max-sessions", "100000", "--max-processes", "1000"},
			operators(at), server(l, at)), nil
	}}
}

func httpServer(_ *lab, at place) []string { return []string{"http://" + at.behind + "/mcp"} }

func stdioServer(isolation string) func(*lab, place) []string {
	return func(l *lab, _ place) []string {
		return []string{"--isolation", isolation, "--", l.bin("echoserver")}
	}
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
