package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// usage runs signalbox with arguments that it must refuse.
func usage(t *testing.T, args ...string) string {
	t.Helper()
	r := start(t, args...)
	if code := r.exit(); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	out, err := r.text()
	if out != "" || strings.Count(err, "\n") > 2 {
		t.Errorf("it prints %q and %q", out, err)
	}
	return err
}

func TestWrongUsage(t *testing.T) {
	short := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(short, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := configFile(t, t.TempDir(), "mcpServers: {a: {command: cat}}")
	for name, c := range map[string]struct {
		args string
		want []string
	}{
		"no command":                {"", []string{"serve"}},
		"unknown command":           {"serf -- cat", []string{"serf"}},
		"no server":                 {"serve", []string{"COMMAND"}},
		"URL without a host":        {"serve http://", []string{"URL"}},
		"URL with a password":       {"serve http://user:s3cret@localhost/mcp", []string{"--header"}},
		"URL and environment":       {"serve --env K=V http://localhost/mcp", []string{"--env", "URL"}},
		"URL and isolation":         {"serve --isolation shared http://localhost/mcp", []string{"--isolation", "URL"}},
		"two URLs":                  {"serve http://localhost/mcp http://localhost/mcp", []string{"only one server"}},
		"header for a command":      {"serve --header K:V -- cat", []string{"--header", "HTTP servers"}},
		"header that is none":       {"serve --header K http://localhost/mcp", []string{"--header", "Name: value"}},
		"header of the protocol":    {"serve --header Mcp-Session-Id:x http://localhost/mcp", []string{"--header", "Mcp-Session-Id"}},
		"header with unset name":    {"serve --header K:${SIGNALBOX_NOT_SET} http://localhost/mcp", []string{"--header K", "SIGNALBOX_NOT_SET"}},
		"connect to no URL":         {"connect localhost", []string{"URL"}},
		"file and command":          {"serve --config FILE -- cat", []string{"--config", "contradict"}},
		"file and environment":      {"serve --config FILE --env K=V", []string{"--env", "entry"}},
		"no such file":              {"serve --config /nowhere/at/all", []string{"/nowhere/at/all", "no such file"}},
		"on-lost for a command":     {"serve --on-lost reinitialize -- cat", []string{"--on-lost", "HTTP servers"}},
		"no address range":          {"serve --trusted-proxy ten -- cat", []string{"--trusted-proxy", "10.0.0.0/8"}},
		"mistyped flag":             {"serve --listne x -- cat", []string{"--listne", `"--listen"`}},
		"mistyped flag with value":  {"serve --max-sesions=3 -- cat", []string{"--max-sesions", `"--max-sessions"`}},
		"mistyped after a good one": {"serve --insecure --isolaton shared cat", []string{`"--isolation"`}},
		"behind the command":        {"serve npx --port 3 --listen 127.0.0.1:0", []string{"--listen", "behind the command"}},
		"behind it with value":      {"serve cat --drain=5s", []string{"--drain", "behind the command"}},
		"timeout above the limit":   {"serve --call-timeout 3h --call-limit 1h -- cat", []string{"--call-timeout", "--call-limit", "contradict"}},
		"no duration":               {"serve --drain 5 -- cat", []string{"--drain"}},
		"negative duration":         {"serve --drain=-5s -- cat", []string{"--drain", "more than 0"}},
		"zero duration":             {"serve --keepalive 0s -- cat", []string{"--keepalive", "more than 0"}},
		"no size":                   {"serve --max-message 4MB -- cat", []string{"--max-message", "4MiB"}},
		"size too small":            {"serve --max-message 12 -- cat", []string{"--max-message", "1KiB"}},
		"size too large":            {"serve --max-message 3GiB -- cat", []string{"--max-message", "2GiB"}},
		"no sessions":               {"serve --max-sessions 0 -- cat", []string{"--max-sessions"}},
		"fewer than no sessions":    {"serve --max-sessions-per-principal=-1 -- cat", []string{"--max-sessions-per-principal"}},
		"no calls":                  {"serve --max-calls 0 -- cat", []string{"--max-calls"}},
		"fewer than no calls":       {"serve --max-calls-per-principal=-1 -- cat", []string{"--max-calls-per-principal"}},
		"fewer than no requests":    {"serve --max-requests-per-second=-1 -- cat", []string{"--max-requests-per-second"}},
		"clients without TLS":       {"serve --tls-client-ca FILE -- cat", []string{"--tls-client-ca", "--tls-cert"}},
		"unknown isolation":         {"serve --isolation none -- cat", []string{"--isolation", "shared"}},
		"unknown level":             {"serve --log-level loud -- cat", []string{"--log-level", "debug"}},
		"unknown store":             {"serve --store postgres://localhost -- cat", []string{"--store", "redis"}},
		"peers without a store":     {"serve --peer-listen 127.0.0.1:0 -- cat", []string{"--peer-listen", "--store redis"}},
		"peers without secret":      {"serve --store redis://127.0.0.1:1 --peer-listen 127.0.0.1:0 -- cat", []string{"--peer-secret-file"}},
		"open without keys":         {"serve --listen 0.0.0.0:0 -- cat", []string{"--auth-keys", "--insecure"}},
		"audience without issuer":   {"serve --auth-audience x -- cat", []string{"--auth-audience", "--auth-keys"}},
		"certificate without key":   {"serve --tls-cert FILE -- cat", []string{"--tls-key"}},
		"no K=V":                    {"serve --env K -- cat", []string{"--env", "K=V"}},
		"no name":                   {"serve --env =V -- cat", []string{"--env", "K=V"}},
		"no address":                {"serve --listen 8080 -- cat", []string{"--listen", "HOST:PORT"}},
		"no port":                   {"serve --listen 127.0.0.1:99999 -- cat", []string{"--listen", "HOST:PORT"}},
		"beyond loopback":           {"serve --listen 0.0.0.0:0 -- cat", []string{"--listen", "--insecure"}},
		"all addresses":             {"serve --listen :0 -- cat", []string{"--listen", "--insecure"}},
		"admin beyond loopback":     {"serve --admin-listen 192.168.0.1:0 -- cat", []string{"--admin-listen", "--admin-token-file"}},
		"insecure is for clients":   {"serve --insecure --admin-listen 0.0.0.0:0 -- cat", []string{"--admin-listen", "--admin-token-file"}},
		"a token for nothing":       {"serve --admin-token-file FILE -- cat", []string{"--admin-token-file", "--admin-listen"}},
		"no token":                  {"serve --admin-listen 127.0.0.1:0 --admin-token-file " + short + "x -- cat", []string{"--admin-token-file"}},
		"a short token":             {"serve --admin-listen 127.0.0.1:0 --admin-token-file " + short + " -- cat", []string{"--admin-token-file", "16"}},
		"no URL":                    {"serve --public-url example.com -- cat", []string{"--public-url"}},
		"URL with query":            {"serve --public-url https://example.com/?x -- cat", []string{"--public-url"}},
		"host with scheme":          {"serve --allowed-host https://example.com -- cat", []string{"--allowed-host"}},
		"origin without scheme":     {"serve --allowed-origin example.com -- cat", []string{"--allowed-origin"}},
		"origin with path":          {"serve --allowed-origin https://example.com/x -- cat", []string{"--allowed-origin"}},
		"no key":                    {"serve --state-key-file " + short + "x -- cat", []string{"--state-key-file"}},
		"short key":                 {"serve --state-key-file " + short + " -- cat", []string{"--state-key-file", "32"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := usage(t, strings.Fields(strings.ReplaceAll(c.args, "FILE", file))...)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %s in %q", want, got)
				}
			}
			if strings.Contains(got, "short\n") {
				t.Error("it prints the key")
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SIGNALBOX_ISOLATION", "none")
	if got := usage(t, "serve", "--", "cat"); !strings.Contains(got, "none") {
		t.Errorf("the environment is not read: %s", got)
	}
	// The flag wins over the environment, which wins over the default.
	t.Setenv("SIGNALBOX_ISOLATION", "shared")
	t.Setenv("SIGNALBOX_MAX_MESSAGE", "1")
	t.Setenv("SIGNALBOX_PUBLIC_URL", "https://mcp.example.com/team/")
	t.Setenv("SIGNALBOX_ALLOWED_HOST", "a.example,b.example:1")
	args := []string{"serve", "--listen", "127.0.0.1:0", "--max-message", "2KiB", "--", "cat"}
	start(t, args...).await(`HTTP\+SSE +https://mcp.example.com/team/sse\n`)
	start(t, append(args[:3:3], append([]string{"--public-url", "https://other.example/x/"}, args[3:]...)...)...).await(`"url":"https://other.example/x/mcp"`)
}

func TestVersionAndHelp(t *testing.T) {
	for _, args := range []string{"version", "--help", "serve --help"} {
		r := start(t, strings.Fields(args)...)
		if code := r.exit(); code != exitOK {
			t.Errorf("%s: exit code %d", args, code)
		}
		out, err := r.text()
		if err != "" || !strings.Contains(out, "signalbox") {
			t.Errorf("%s prints %q and %q", args, out, err)
		}
		if args == "serve --help" && (!strings.Contains(out, "--public-url") || !strings.Contains(out, "SIGNALBOX_MAX_SESSIONS_PER_PRINCIPAL")) {
			t.Errorf("help: %s", out)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]size{"0": 0, "1": 1, "64KiB": 64 << 10, "4MiB": 4 << 20, "2GiB": 2 << 30, "9223372036854775807": 1<<63 - 1} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "KiB", "-1", "-1KiB", "1KB", "1 KiB", "1.5MiB", "0x10", "9223372036854775807KiB", "9223372036854775808"} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestServerName(t *testing.T) {
	for args, want := range map[string]string{
		"cat":                   "cat",
		"/usr/local/bin/my-srv": "my-srv",
		"npx -y @modelcontextprotocol/server-everything":       "server-everything",
		"npx -y @modelcontextprotocol/server-everything@1.2.3": "server-everything",
		"/opt/bin/uvx mcp-server-time --local-timezone UTC":    "mcp-server-time",
		"uvx pkg@latest":       "pkg",
		"python -m mcp_server": "python",
		"node ./dist/index.js": "node",
		"npx --registry https://user:s3cret@reg.example/ pkg": "npx",
		"npx --token s3cret pkg":                              "npx",
		"npx -y https://user:s3cret@git.example/pkg.git":      "npx",
		"node":                     "node",
		"npx -y":                   "npx",
		"my server!":               "my",
		"./ünïcode":                "n-code",
		"/":                        "server",
		"..":                       "server",
		"@":                        "server",
		strings.Repeat("long", 40): strings.Repeat("long", 16),
	} {
		if got := serverName(strings.Fields(args)); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

func TestMistypedEnvironment(t *testing.T) {
	var grammar cli
	parser, err := kong.New(&grammar, kong.DefaultEnvars("SIGNALBOX"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse([]string{"serve", "--", "cat"})
	if err != nil {
		t.Fatal(err)
	}
	got := mistypedEnv(parsed, []string{"SIGNALBOX_MAX_SESIONS=3", "SIGNALBOX_MAX_SESSIONS=3", "SIGNALBOX_SERVICE_HOST=10.0.0.1", "PATH=/bin"})
	if len(got) != 1 || !strings.Contains(got[0], "SIGNALBOX_MAX_SESIONS") || !strings.Contains(got[0], "did you mean SIGNALBOX_MAX_SESSIONS") {
		t.Errorf("%q", got)
	}
}

func TestNpxThatMayAsk(t *testing.T) {
	for args, want := range map[string]bool{"npx pkg": true, "npx -y pkg": false, "npx --yes pkg": false, "uvx pkg": false} {
		if mayAsk(strings.Fields(args)) != want {
			t.Errorf("%s: %v", args, !want)
		}
	}
}
