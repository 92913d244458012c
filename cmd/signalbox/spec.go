package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/config"
)

// spec is one server with all that holds for it, from the file or from the
// command line.
type spec struct {
	config.Server             // without Limits: they are below; Line is 0
	header        http.Header // for an HTTP server
	url           *url.URL    // of it
	endpoints     []*url.URL  // of it, if they are not the URL's

	limits                  limitFlags
	idle, maxAge            time.Duration
	maxSessions             int // 0: no limit of its own
	maxSessionsPerPrincipal int
	maxProcesses            int
}

func (s spec) same(o spec) bool { return reflect.DeepEqual(s, o) }

func names(specs []spec) []string {
	list := make([]string, len(specs))
	for i, s := range specs {
		list[i] = s.Name
	}
	return list
}

func largest(specs []spec, least size) size {
	for _, s := range specs {
		least = max(least, s.limits.MaxMessage)
	}
	return least
}

// lone is the server that the command line names.
func (c *serveCmd) lone() (spec, error) {
	header, err := c.headers()
	if err != nil {
		return spec{}, err
	}
	s := c.defaults()
	s.Era = c.Era
	if isURL(c.Command[0]) {
		if len(c.Env)+len(c.PassEnv) > 0 || c.Cwd != "" || c.Isolation == "shared" {
			return spec{}, errors.New("--env, --pass-env, --cwd and --isolation are for commands; this server is a URL")
		}
		if len(c.Command) > 1 {
			return spec{}, fmt.Errorf("%q stands behind the URL; only one server can be named here", c.Command[1])
		}
		if s.url, err = serverURL(c.Command[0]); err != nil {
			return spec{}, err
		}
		s.Name, s.header, s.ForwardHeaders = hostName(s.url), header, c.ForwardHeader
		s.OnLost = c.OnLost
		return s, nil
	}
	if len(c.Header)+len(c.HeaderFile)+len(c.ForwardHeader) > 0 || c.OnLost != "end" {
		return spec{}, errors.New("--header, --header-file, --forward-header and --on-lost are for HTTP servers; this one is a command")
	}
	s.Name = serverName(c.Command)
	s.Command, s.Args, s.Cwd, s.PassEnv = c.Command[0], c.Command[1:], c.Cwd, c.PassEnv
	s.Isolation = c.Isolation
	s.Env = make(map[string]string)
	for _, kv := range c.Env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			return spec{}, fmt.Errorf("--env: %q is not K=V", kv)
		}
		s.Env[name] = value
	}
	return s, nil
}

// defaults is a server that says nothing of itself.
func (c *serveCmd) defaults() spec {
	return spec{limits: c.limitFlags, idle: c.SessionIdle, maxAge: c.SessionMaxAge}
}

// fromFile makes the servers of a file. Their form was checked when it was
// read.
func (c *serveCmd) fromFile(f *config.File) ([]spec, error) {
	var specs []spec
	for _, server := range f.Servers {
		if server.Disabled {
			continue
		}
		s := c.defaults()
		s.Server = server
		s.Line, s.Limits = 0, nil
		if s.Isolation == "" {
			s.Isolation = c.Isolation
		}
		if s.Era == "" {
			s.Era = c.Era
		}
		if err := s.setLimits(server.Limits); err != nil {
			return nil, fmt.Errorf("%s:%d: mcpServers.%s: %w", f.Path, server.Line, server.Name, err)
		}
		if s.URL != "" {
			s.setURL()
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func (s *spec) setURL() {
	s.url, _ = url.Parse(s.URL) // checked
	addresses := s.Endpoints
	if s.DNS != "" {
		addresses = []string{s.DNS}
	}
	for _, text := range addresses {
		u, _ := url.Parse(text) // checked
		s.endpoints = append(s.endpoints, u)
	}
	s.header = make(http.Header)
	for name, value := range s.Headers {
		s.header.Set(name, value)
	}
}

// setLimits reads the limits of one server.
func (s *spec) setLimits(texts map[string]string) error {
	for name, text := range texts {
		var err error
		switch name {
		case "call-timeout":
			s.limits.CallTimeout, err = time.ParseDuration(text)
		case "call-limit":
			s.limits.CallLimit, err = time.ParseDuration(text)
		case "question-timeout":
			s.limits.QuestionTimeout, err = time.ParseDuration(text)
		case "start-timeout":
			s.limits.StartTimeout, err = time.ParseDuration(text)
		case "session-idle":
			s.idle, err = time.ParseDuration(text)
		case "session-max-age":
			s.maxAge, err = time.ParseDuration(text)
		case "max-message":
			err = s.limits.MaxMessage.UnmarshalText([]byte(text))
		case "max-sessions":
			s.maxSessions, err = strconv.Atoi(text)
		case "max-sessions-per-principal":
			s.maxSessionsPerPrincipal, err = strconv.Atoi(text)
		case "max-processes":
			s.maxProcesses, err = strconv.Atoi(text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if texts["call-timeout"] != "" && texts["call-limit"] == "" {
		s.limits.CallLimit = max(s.limits.CallLimit, s.limits.CallTimeout) // its own word counts more than the general one
	}
	return s.limits.check()
}

// warn says what of the servers is probably not meant.
func (c *serveCmd) warn(specs []spec, log *slog.Logger) {
	if c.file == nil {
		if argv := append([]string{specs[0].Command}, specs[0].Args...); mayAsk(argv) {
			log.Warn("npx may wait for an answer before it downloads; add -y")
		}
		return
	}
	for _, text := range c.file.Warnings {
		log.Warn("configuration: " + text)
	}
	if len(c.file.Ignored) > 0 {
		log.Info("configuration: keys that mean nothing here", "settings", strings.Join(c.file.Ignored, ", "))
	}
}
