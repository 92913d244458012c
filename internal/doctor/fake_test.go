package doctor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"unicode/utf16"
)

// settleAddr names where a fake says that it has written all that it will.
const settleAddr = "SIGNALBOX_TEST_SETTLE"

// fake is a server for tests. Its methods end the process when stdin ends.
type fake struct{ in *bufio.Reader }

type asked struct {
	ID     json.RawMessage
	Method string
}

// next is the next request or notification.
func (f *fake) next() asked {
	for {
		line, err := f.in.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var a asked
		if json.Unmarshal(line, &a) == nil {
			return a
		}
	}
}

// settle is settled, and waits for the end of stdin.
func (f *fake) settle() {
	settled()
	for {
		f.next()
	}
}

// settled tells the test that nothing more will come by itself.
func settled() {
	c, err := net.Dial("tcp", os.Getenv(settleAddr))
	if err != nil {
		os.Exit(9)
	}
	fmt.Fprintln(c, os.Getpid())
	c.Close()
}

func result(id json.RawMessage, body string) string {
	return `{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + body + `}`
}

func failure(id json.RawMessage, body string) string {
	return `{"jsonrpc":"2.0","id":` + string(id) + `,"error":` + body + `}`
}

const (
	initResult = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"fake","version":"1.2"}}`
	noMethod   = `{"code":-32601,"message":"Method not found"}`
	toolList   = `{"tools":[{"name":"read"},{"name":"write"}]}`
)

// serve is a good server of the handshake era, but for what special answers.
func (f *fake) serve(special func(a asked) (line string, ok bool)) {
	for {
		a := f.next()
		if len(a.ID) == 0 {
			continue
		}
		line, ok := "", false
		if special != nil {
			line, ok = special(a)
		}
		switch {
		case ok:
		case a.Method == "initialize":
			line = result(a.ID, initResult)
		case a.Method == "tools/list":
			line = result(a.ID, toolList)
		default:
			line = failure(a.ID, noMethod)
		}
		if line != "" {
			fmt.Println(line)
		}
	}
}

// on answers one method with its own line.
func on(method string, line func(id json.RawMessage) string) func(asked) (string, bool) {
	return func(a asked) (string, bool) {
		if a.Method != method {
			return "", false
		}
		return line(a.ID), true
	}
}

// say writes a text made of the first request's id, and settles.
func say(format string) func(*fake) {
	return func(f *fake) {
		fmt.Print(strings.ReplaceAll(format, "ID", string(f.next().ID)))
		f.settle()
	}
}

// die writes to stderr and exits.
func die(code int, text string) func(*fake) {
	return func(*fake) {
		fmt.Fprintln(os.Stderr, text)
		os.Exit(code)
	}
}

// dieBy ends by a signal.
func dieBy(sig os.Signal) func(*fake) {
	return func(f *fake) {
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Signal(sig) != nil {
			os.Exit(9)
		}
		for {
			f.next()
		}
	}
}

func runFake(mode string) {
	f := &fake{in: bufio.NewReader(os.Stdin)}
	fakes[mode](f)
}

// fakes are all servers, by the name that the table of tests has.
var fakes = map[string]func(*fake){
	"good": func(f *fake) { f.serve(nil) },
	"good with noise": func(f *fake) {
		fmt.Println("Server v1.2 ready, key s3cret-value")
		fmt.Fprintln(os.Stderr, "token s3cret-value loaded")
		f.serve(nil)
	},
	"per-request": func(f *fake) { f.serve(perRequestAnswers) },
	"per-request, handshake too": func(f *fake) {
		f.serve(func(a asked) (string, bool) {
			if a.Method == "initialize" {
				return "", false
			}
			return perRequestAnswers(a)
		})
	},
	"legacy by -32022": func(f *fake) {
		f.serve(on("server/discover", func(id json.RawMessage) string {
			return failure(id, `{"code":-32022,"message":"Unsupported","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}`)
		}))
	},
	"dies of discover": func(f *fake) {
		f.serve(func(a asked) (string, bool) {
			if a.Method == "server/discover" {
				os.Exit(1)
			}
			return "", false
		})
	},

	"lsp": func(f *fake) {
		body := result(f.next().ID, initResult)
		fmt.Printf("Content-Length: %d\r\n\r\n%s", len(body), body)
		f.settle()
	},
	"npx asks": func(f *fake) {
		fmt.Print("Need to install the following packages:\nsome-server@1.0.0\nOk to proceed? (y) ")
		f.settle()
	},
	"asks": func(f *fake) {
		fmt.Print("Vault password: ")
		f.settle()
	},
	"wrong id":     say(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"),
	"no id":        say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}` + "\n"),
	"pretty":       say("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": ID,\n  \"result\": {\n  }\n}\n"),
	"bad JSON":     say(`{"jsonrpc":"2.0","id":ID,"result":{"x":NaN}}` + "\n"),
	"python dict":  say(`{'jsonrpc': '2.0', 'id': ID, 'result': {}}` + "\n"),
	"not JSON-RPC": say(`{"jsonrpc":"1.0","id":ID,"result":{}}` + "\n"),
	"two on line":  say(`{"jsonrpc":"2.0","method":"notifications/x"}{"jsonrpc":"2.0","id":ID,"result":{}}` + "\n"),
	"no line end":  say(`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18"}}`),
	"utf-16": func(f *fake) {
		text := utf16.Encode([]rune("\uFEFF" + result(f.next().ID, initResult) + "\n"))
		for _, unit := range text {
			os.Stdout.Write([]byte{byte(unit), byte(unit >> 8)})
		}
		f.settle()
	},
	"answers on stderr": func(f *fake) {
		fmt.Fprintln(os.Stderr, result(f.next().ID, initResult))
		f.settle()
	},
	"buffered": func(f *fake) {
		out := bufio.NewWriterSize(os.Stdout, 8192)
		for n := 0; ; n++ {
			a := f.next()
			body := "{}"
			if a.Method == "initialize" {
				body = initResult
			}
			fmt.Fprintln(out, result(a.ID, body))
			if n == 0 {
				settled()
			}
		}
	},
	"reads to EOF": func(f *fake) {
		first := f.next()
		settled()
		for {
			if _, err := f.in.ReadByte(); err != nil {
				break
			}
		}
		fmt.Println(result(first.ID, initResult))
	},
	"silent":       func(f *fake) { f.settle() },
	"silent noise": func(f *fake) { fmt.Println("Welcome to the tool. Type help."); f.settle() },
	"echo": func(f *fake) {
		line, _ := f.in.ReadString('\n')
		fmt.Print(line)
		f.settle()
	},
	"http as command": func(f *fake) {
		fmt.Fprintln(os.Stderr, "INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)")
		f.settle()
	},
	"http by port": func(f *fake) { fmt.Println("Server listening on port 3000"); f.settle() },
	"closes stdout": func(f *fake) {
		os.Stdout.Close()
		for {
			f.next()
		}
	},
	"exits at once":       func(*fake) {},
	"exits with words":    func(*fake) { fmt.Println("Usage: tool serve|check") },
	"exit code":           func(*fake) { os.Exit(3) },
	"exit with reason":    die(3, "Traceback (most recent call last):\n  File \"server.py\", line 3, in <module>\nValueError: bad port 'x' for key s3cret-value\n"),
	"no node module":      die(1, "node:internal/modules/cjs/loader:1228\n  throw err;\nError: Cannot find module 'express'\nRequire stack:\n  code: 'MODULE_NOT_FOUND',\n}\n\nNode.js v22.1.0"),
	"no own module":       die(1, "Error [ERR_MODULE_NOT_FOUND]: Cannot find module './lib/tools.js' imported from /opt/s/index.js"),
	"no python module":    die(1, "ModuleNotFoundError: No module named 'mcp'"),
	"no script":           die(2, "python: can't open file '/opt/s/server.py': [Errno 2] No such file or directory"),
	"variable missing":    die(1, "Error: GITHUB_TOKEN environment variable is required\n    at main (/opt/s/index.js:3:1)"),
	"variable not passed": die(1, "KeyError: 'SET_HERE'"),
	"port in use":         die(1, "Error: listen EADDRINUSE: address already in use :::3000"),
	"no package":          die(1, "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/no-such-thing - Not found\nnpm error 404  'no-such-thing@*' is not in this registry.\nnpm error A complete log of this run can be found in: /root/.npm/x.log"),
	"no version":          die(1, "npm error code ETARGET\nnpm error notarget No matching version found for some-server@99.0.0."),
	"no registry":         die(1, "npm error code EAI_AGAIN\nnpm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org"),
	"no runner":           die(127, "/usr/bin/env: 'node': No such file or directory"),
	"runner with CR":      die(127, "/usr/bin/env: 'node\\r': No such file or directory"),
	"not found in shell":  die(127, "sh: 1: uvx: not found"),
	"no terminal":         die(1, "the input device is not a TTY"),
	"no docker daemon":    die(1, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"),
	"docker without -i":   func(*fake) {},
	"killed":              dieBy(os.Kill),
	"ended by a signal":   dieBy(syscall.SIGTERM),

	"refuses": func(f *fake) {
		f.serve(on("initialize", func(id json.RawMessage) string {
			return failure(id, `{"code":-32000,"message":"license expired for key s3cret-value"}`)
		}))
	},
	"refuses the version": func(f *fake) {
		f.serve(on("initialize", func(id json.RawMessage) string {
			return failure(id, `{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05"],"requested":"2025-11-25"}}`)
		}))
	},
	"unknown version": func(f *fake) {
		f.serve(on("initialize", func(id json.RawMessage) string { return result(id, `{"protocolVersion":"1.0","capabilities":{}}`) }))
	},
	"no version in answer": func(f *fake) {
		f.serve(on("initialize", func(id json.RawMessage) string {
			return result(id, `{"capabilities":{"hoverProvider":true}}`)
		}))
	},
	"ends later": func(f *fake) {
		f.serve(func(a asked) (string, bool) {
			if a.Method == "tools/list" {
				fmt.Fprintln(os.Stderr, "TypeError: x is undefined")
				os.Exit(1)
			}
			return "", false
		})
	},
	"tools error": func(f *fake) {
		f.serve(on("tools/list", func(id json.RawMessage) string { return failure(id, `{"code":-32603,"message":"no database"}`) }))
	},
	"tools without list": func(f *fake) {
		f.serve(on("tools/list", func(id json.RawMessage) string { return result(id, `{}`) }))
	},
	"tools silent": func(f *fake) {
		f.serve(func(a asked) (string, bool) {
			if a.Method == "tools/list" {
				f.settle()
			}
			return "", false
		})
	},
	"tools without end": func(f *fake) {
		f.serve(on("tools/list", func(id json.RawMessage) string {
			return result(id, `{"tools":[{"name":"a"},{"name":"a"}],"nextCursor":"again"}`)
		}))
	},
}

func perRequestAnswers(a asked) (string, bool) {
	switch a.Method {
	case "server/discover":
		return result(a.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern","version":"3"}}}`), true
	case "tools/list":
		return "", false
	}
	return failure(a.ID, noMethod), true
}
