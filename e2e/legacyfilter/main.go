// Command legacyfilter runs a server over stdio and keeps everything from it that speaks
// revision 2026-07-28 or later, so that a server of both eras becomes one of the
// handshake era, with all that it has. What passes, passes byte for byte.
//
//	legacyfilter [-code CODE] COMMAND [ARG...]
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"sync"
)

// firstModern is the first revision without a handshake. Revisions are dates, so they
// compare as text.
const firstModern = "2026-07-28"

func main() {
	log.SetFlags(0)
	log.SetPrefix("legacyfilter: ")
	code := flag.Int("code", -32601, "the `code` of the error that a request of a later revision gets")
	flag.Parse()
	err := run(*code, flag.Args())
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(code int, command []string) error {
	if len(command) == 0 {
		return errors.New("no command")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out := &lineWriter{w: os.Stdout}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer stdin.Close()
		err := eachLine(os.Stdin, func(line []byte) error { return filter(code, line, stdin, out) })
		if err != nil {
			log.Print(err)
		}
	}()
	if err := eachLine(stdout, out.write); err != nil {
		return err
	}
	return cmd.Wait()
}

// filter passes a line on, or answers it.
func filter(code int, line []byte, child io.Writer, client *lineWriter) error {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Meta struct {
				Version string `json:"io.modelcontextprotocol/protocolVersion"`
			} `json:"_meta"`
		}
	}
	// What is no such message is the server's to judge.
	if json.Unmarshal(line, &m) != nil || m.Params.Meta.Version < firstModern && m.Method != "server/discover" {
		_, err := child.Write(line)
		return err
	}
	if m.ID == nil {
		return nil
	}
	return client.write(refusal(code, m.ID, m.Method, m.Params.Meta.Version))
}

func refusal(code int, id json.RawMessage, method, version string) []byte {
	data := ""
	if code == -32022 {
		data = fmt.Sprintf(`,"data":{"supported":["2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":%q}`, version)
	}
	message, err := json.Marshal("a server of the handshake era does not know " + method)
	if err != nil {
		panic(err) // no string fails
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s%s}}`+"\n", id, code, message, data)
}

func eachLine(r io.Reader, do func([]byte) error) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			if err := do(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// lineWriter writes lines whole.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func (l *lineWriter) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.w.Write(line)
	return err
}
