package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/doctor"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// doctorCmd tries servers out and says what is wrong with them.
type doctorCmd struct {
	Config       string        `type:"path" placeholder:"FILE" help:"File with the servers, as for serve."`
	Env          []string      `sep:"none" placeholder:"K=V" help:"Variable for the server's environment; repeatable."`
	PassEnv      []string      `placeholder:"NAME" help:"Variable of this environment to pass on; repeatable."`
	Cwd          string        `placeholder:"DIR" help:"Working directory of the server."`
	Header       []string      `sep:"none" placeholder:"K: V" help:"Header for an HTTP server; $${ENV} expands; repeatable."`
	HeaderFile   []string      `type:"path" placeholder:"FILE" help:"File with headers for an HTTP server, one in a line; repeatable."`
	StartTimeout time.Duration `help:"Until the server's answer to initialize; as for serve if not set."`
	MaxMessage   size          `help:"One message of the server; as for serve if not set."`
	JSON         bool          `name:"json" help:"Print JSON instead of text."`

	Command []string `arg:"" optional:"" passthrough:"" help:"The server's command and its arguments, or its URL."`
}

// patients is how many servers are tried out at once.
const patients = 4

// errUnwell: the report is printed, and tells why.
var errUnwell = errors.New("not every server is well")

func (c *doctorCmd) run(ctx context.Context, std streams) error {
	specs, err := c.specs(std)
	if err != nil {
		return usageError{err}
	}
	supervisor, err := child.NewSupervisor(child.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	o := doctor.Options{Supervisor: supervisor, Version: versionText(), LookupEnv: os.LookupEnv}
	reports := c.examine(ctx, specs, o, std)
	stop, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := supervisor.Close(stop); err != nil {
		return err
	}
	if c.JSON {
		out := json.NewEncoder(std.out)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		err = out.Encode(map[string]any{"servers": reports})
	} else {
		_, err = fmt.Fprintln(std.out, doctor.Summary(reports))
	}
	if err == nil && slices.ContainsFunc(reports, func(r doctor.Report) bool { return !r.Well }) {
		err = errUnwell
	}
	return err
}

// specs are the servers, as serve makes them of the same words.
func (c *doctorCmd) specs(std streams) ([]spec, error) {
	args := []string{"serve"}
	if c.StartTimeout != 0 {
		args = append(args, "--start-timeout="+c.StartTimeout.String())
	}
	if c.MaxMessage != 0 {
		args = append(args, fmt.Sprintf("--max-message=%d", c.MaxMessage))
	}
	if c.Config != "" {
		args = append(args, "--config="+c.Config)
	}
	for name, values := range map[string][]string{"--env": c.Env, "--pass-env": c.PassEnv, "--header": c.Header, "--header-file": c.HeaderFile} {
		for _, v := range values {
			args = append(args, name+"="+v)
		}
	}
	if c.Cwd != "" {
		args = append(args, "--cwd="+c.Cwd)
	}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) > 0 {
		args = append(append(args, "--"), command...)
	}
	grammar, _, _, err := parse(args, std)
	if err != nil {
		return nil, err
	}
	serve := &grammar.Serve
	serve.Command = command
	if len(command) == 0 && serve.file == nil {
		return nil, errors.New("no server; write signalbox doctor [flags] -- COMMAND and its arguments, or a URL, or --config FILE")
	}
	if err := serve.limitFlags.check(); err != nil {
		return nil, err
	}
	return serve.servers()
}

// examine tries the servers out, and prints each report when those before it
// are printed.
func (c *doctorCmd) examine(ctx context.Context, specs []spec, o doctor.Options, std streams) []doctor.Report {
	var servers []doctor.Server
	for _, s := range specs {
		servers = append(servers, patientsOf(s)...)
	}
	reports := make([]doctor.Report, len(servers))
	done := make([]chan struct{}, len(servers))
	for i := range done {
		done[i] = make(chan struct{})
	}
	var all sync.WaitGroup
	all.Go(func() {
		var group errgroup.Group
		group.SetLimit(patients)
		for i, s := range servers {
			group.Go(func() error {
				defer close(done[i])
				reports[i] = doctor.Examine(ctx, s, o)
				return nil
			})
		}
		_ = group.Wait() // there are no errors
	})
	for i := range servers {
		<-done[i]
		if !c.JSON {
			doctor.Print(std.out, reports[i])
			fmt.Fprintln(std.out)
		}
	}
	all.Wait()
	return reports
}

// patientsOf is what is to be tried out of one server: each of its addresses.
func patientsOf(s spec) []doctor.Server {
	one := doctor.Server{
		Name: s.Name, Type: s.Type, Era: s.Era, StartTimeout: s.limits.StartTimeout, MaxMessage: int(s.limits.MaxMessage),
		URL: s.url, Header: s.header,
	}
	for _, value := range s.Env {
		one.Secrets = append(one.Secrets, value)
	}
	for _, name := range s.PassEnv {
		one.Secrets = append(one.Secrets, os.Getenv(name))
	}
	if s.url == nil {
		one.Program = withClientEnv(programOf(s), s, upstream.Request{})
		return []doctor.Server{one}
	}
	if c := s.Credentials; c != nil {
		one.Secrets = append(one.Secrets, c.ClientSecret)
		one.Token = newClientCredentials(c).Token
	}
	if len(s.endpoints) == 0 {
		return []doctor.Server{one}
	}
	var all []doctor.Server
	for _, at := range s.endpoints {
		each := one
		each.Address = at
		all = append(all, each)
	}
	return all
}
