package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/config"
)

// serveCmd holds the flags of serve. Each has an environment variable
// SIGNALBOX_NAME; the flag wins.
type serveCmd struct {
	Config         string   `type:"path" placeholder:"FILE" help:"File with the servers and settings, YAML or JSON; flags and environment win over it."`
	Listen         string   `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address for clients."`
	AdminListen    string   `placeholder:"ADDR" help:"Address for /status, /metrics and /api/v1; off if empty."`
	AdminTokenFile string   `type:"path" placeholder:"FILE" help:"File with the token that requests to --admin-listen must show, at least 16 bytes; needed beyond loopback."`
	Isolation      string   `default:"auto" enum:"auto,session,shared" help:"A process for each session, or one shared by all: auto, session or shared."`
	Era            string   `default:"auto" enum:"auto,legacy,modern" help:"Protocol era of the server: legacy (initialize, up to 2025-11-25), modern (2026-07-28), or auto: found out."`
	Env            []string `sep:"none" placeholder:"K=V" help:"Variable for the server's environment; repeatable."`
	PassEnv        []string `placeholder:"NAME" help:"Variable of this environment to pass on; repeatable."`
	Cwd            string   `placeholder:"DIR" help:"Working directory of the server."`

	SessionIdle             time.Duration `default:"2h" help:"A session without message, open stream and call for so long ends."`
	SessionMaxAge           time.Duration `default:"0" help:"A session ends after so long, used or not; 0: no limit."`
	MaxSessions             int           `default:"1024" help:"Sessions in this process."`
	MaxProcesses            int           `default:"128" help:"Server processes in all, those that are stopping counted."`
	MaxSessionsPerPrincipal int           `default:"0" help:"Sessions of one principal; 0: no limit."`
	MaxCalls                int           `default:"4096" help:"Calls in flight in this process."`
	MaxCallsPerPrincipal    int           `default:"0" help:"Calls in flight of one principal; 0: no limit."`
	MaxRequestsPerSecond    int           `default:"0" help:"Requests a second of one principal, or of one client address where there is no authorization; 0: no limit."`
	Keepalive               time.Duration `default:"15s" help:"Between comments on a quiet stream."`
	Drain                   time.Duration `default:"20s" help:"For calls in flight after SIGTERM."`

	storeFlags
	remoteFlags
	OnLost string `default:"end" enum:"end,reinitialize" help:"When an HTTP server has lost a session: end it, or reinitialize it there."`
	limitFlags

	PublicURL     string   `placeholder:"URL" help:"The URL that clients use."`
	AllowedHost   []string `placeholder:"NAME" help:"Host names to allow beside loopback names and IP addresses; repeatable."`
	AllowedOrigin []string `placeholder:"ORIGIN" help:"Origins of browser pages to allow beside loopback ones; repeatable."`
	TrustedProxy  []string `placeholder:"CIDR" help:"Addresses of proxies whose X-Forwarded headers are believed; repeatable."`
	authFlags
	tlsFlags
	Insecure        bool   `help:"Allow a listener beyond loopback although there is no authorization."`
	StateKeyFile    string `type:"path" placeholder:"FILE" help:"Key for what signalbox signs and seals (event ids, records), at least 32 bytes; derived from the peers' secret or random if not set."`
	OldStateKeyFile string `type:"path" placeholder:"FILE" help:"The key that --state-key-file held before: a requestState that it sealed is still good."`
	AuditLog        string `placeholder:"FILE" help:"File for a line of JSON for each call and session, without arguments and secrets; - is stderr. SIGHUP opens it anew."`
	TraceEndpoint   string `placeholder:"URL" help:"OpenTelemetry collector that takes traces as OTLP over HTTP; off if empty and OTEL_EXPORTER_OTLP_ENDPOINT is not set."`
	LogLevel        string `default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
	LogFormat       string `default:"auto" enum:"auto,text,json" help:"text or json; auto: text on a terminal."`

	Command []string `arg:"" optional:"" passthrough:"" help:"The server's command and its arguments, or its URL."`

	file    *config.File   // nil without --config
	proxies []netip.Prefix // of --trusted-proxy
}

// size is a number of bytes: 4MiB, 64KiB, 1GiB or plain bytes.
type size int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *size) UnmarshalText(text []byte) error {
	str := string(text)
	unit := int64(1)
	for suffix, n := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(str, suffix); ok {
			str, unit = rest, n
			break
		}
	}
	n, err := strconv.ParseInt(str, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is no size; write 4MiB, 64KiB or a number of bytes", text)
	}
	*s = size(n * unit)
	return nil
}

// maxRate is more requests a second than one process serves.
const maxRate = 1_000_000

// maxMessageCap: positions within a message are 32 bits wide.
const maxMessageCap = size(2 << 30)

// check finds what is wrong with the settings before anything is started, and
// returns the servers.
func (c *serveCmd) check() ([]spec, error) {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	specs, err := c.servers()
	if err == nil {
		err = c.checkSettings()
	}
	if err == nil {
		err = c.checkIdentity(specs)
	}
	return specs, err
}

func (c *serveCmd) servers() ([]spec, error) {
	switch {
	case len(c.Command) == 0 && c.file == nil:
		return nil, errors.New("no server; write signalbox serve [flags] -- COMMAND and its arguments, or a URL, or --config FILE")
	case len(c.Command) > 0 && c.file != nil:
		return nil, errors.New("--config and a command or URL contradict each other; add the server to the file")
	case c.file != nil:
		if len(c.Env)+len(c.PassEnv)+len(c.Header)+len(c.HeaderFile)+len(c.ForwardHeader) > 0 || c.Cwd != "" || c.OnLost != "end" {
			return nil, errors.New("--env, --pass-env, --cwd, --header, --header-file, --forward-header and --on-lost are for a server on the command line; in a file they stand in its entry")
		}
		return c.fromFile(c.file)
	}
	s, err := c.lone()
	return []spec{s}, err
}

func (c *serveCmd) checkSettings() error {
	if err := c.storeFlags.check(); err != nil {
		return err
	}
	if err := c.limitFlags.check(); err != nil {
		return err
	}
	for _, d := range []struct {
		name string
		v    time.Duration
		zero bool
	}{
		{"--session-idle", c.SessionIdle, false}, {"--session-max-age", c.SessionMaxAge, true},
		{"--keepalive", c.Keepalive, false}, {"--drain", c.Drain, true},
	} {
		if d.v < 0 || d.v == 0 && !d.zero {
			return fmt.Errorf("%s: must be more than 0", d.name)
		}
	}
	if c.MaxSessions < 1 || c.MaxProcesses < 1 || c.MaxSessionsPerPrincipal < 0 {
		return errors.New("--max-sessions and --max-processes must be at least 1, --max-sessions-per-principal at least 0")
	}
	if c.MaxCalls < 1 || c.MaxCallsPerPrincipal < 0 || c.MaxRequestsPerSecond < 0 || c.MaxRequestsPerSecond > maxRate {
		return fmt.Errorf("--max-calls must be at least 1, --max-calls-per-principal at least 0, --max-requests-per-second between 0 and %d", maxRate)
	}
	return c.checkAddresses()
}

func (c *serveCmd) checkAddresses() error {
	for _, l := range []struct{ flag, addr string }{{"--listen", c.Listen}, {"--admin-listen", c.AdminListen}} {
		if l.addr == "" && l.flag == "--admin-listen" {
			continue
		}
		host, port, err := net.SplitHostPort(l.addr)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return fmt.Errorf("%s: %q is no HOST:PORT", l.flag, l.addr)
		}
		switch {
		case isLoopback(host):
		case l.flag == "--admin-listen" && c.AdminTokenFile == "":
			return fmt.Errorf("--admin-listen: %s is reachable from other machines, and who reaches it can see and end sessions; use a loopback address, or --admin-token-file FILE", l.addr)
		case l.flag == "--listen" && !c.Insecure && !c.authorized():
			return fmt.Errorf("--listen: %s is reachable from other machines and there is no authorization; use a loopback address, --auth-keys, --auth-issuer or --tls-client-ca, or --insecure if that is what you want", l.addr)
		}
	}
	if c.AdminTokenFile != "" && c.AdminListen == "" {
		return errors.New("--admin-token-file means nothing without --admin-listen")
	}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("--public-url: %q is no http or https URL without query", c.PublicURL)
		}
	}
	for _, h := range c.AllowedHost {
		if h == "" || strings.ContainsAny(h, "/@ ") {
			return fmt.Errorf("--allowed-host: %q is no host name; write mcp.example.com or mcp.example.com:8443", h)
		}
	}
	c.proxies = nil
	for _, text := range c.TrustedProxy {
		p, err := netip.ParsePrefix(text)
		if one, oneErr := netip.ParseAddr(text); oneErr == nil {
			p, err = one.Prefix(one.BitLen())
		}
		if err != nil {
			return fmt.Errorf("--trusted-proxy: %q is no address range; write 10.0.0.0/8 or 10.0.0.1", text)
		}
		c.proxies = append(c.proxies, p.Masked())
	}
	for _, o := range c.AllowedOrigin {
		u, err := url.Parse(o)
		if o != "*" && (err != nil || u.Scheme == "" || u.Host == "" || strings.Trim(u.Path, "/") != "") {
			return fmt.Errorf("--allowed-origin: %q is no origin; write https://app.example.com", o)
		}
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
