package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/signalbox-mcp/signalbox/internal/config"
)

// fileSettings gives serve the settings of its --config file, below flags and
// environment. It is a kong.Resolver.
type fileSettings struct {
	file *config.File // after the first look, if there is one
	err  error        // why there is none; kong would put a flag's name before it
}

// Validate implements kong.Resolver: there is nothing to check before Resolve.
func (s *fileSettings) Validate(*kong.Application) error { return nil }

// Resolve returns the file's value of a flag that is set nowhere else.
func (s *fileSettings) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Name == "config" || ctx.Selected() == nil || ctx.Selected().Name != "serve" {
		return nil, nil
	}
	if s.file == nil {
		path := configPath(ctx)
		if path == "" {
			return nil, nil
		}
		file, err := config.Load(path, os.LookupEnv)
		if err == nil {
			err = knownSettings(ctx, file)
		}
		if s.err = err; err != nil {
			return nil, err
		}
		s.file = file
	}
	setting, ok := s.file.Settings[flag.Name]
	if !ok || slices.ContainsFunc(flag.Envs, func(name string) bool { _, set := os.LookupEnv(name); return set }) {
		return nil, nil
	}
	if !flag.IsSlice() {
		return setting.Values[0], nil
	}
	values := make([]any, len(setting.Values))
	for i, v := range setting.Values {
		values[i] = v
	}
	return values, nil
}

func configPath(ctx *kong.Context) string {
	for _, f := range ctx.Flags() {
		if f.Name == "config" {
			path, _ := ctx.FlagValue(f).(string)
			return path
		}
	}
	return ""
}

// knownSettings refuses what a later version may know.
func knownSettings(ctx *kong.Context, file *config.File) error {
	known := flagNames(ctx)
	var wrong config.Errors
	for name, setting := range file.Settings {
		if !slices.Contains(known, "--"+name) {
			wrong = append(wrong, &config.Error{File: file.Path, Line: setting.Line, Column: 1, Path: name, Msg: "this version does not have this setting"})
		}
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b *config.Error) int { return a.Line - b.Line })
		return wrong
	}
	return nil
}

// checkCmd validates a file as serve would.
type checkCmd struct {
	Config string `type:"path" required:"" placeholder:"FILE" help:"The file."`
}

func (c *checkCmd) run(std streams) error {
	grammar, _, _, err := parse([]string{"serve", "--config", c.Config}, std)
	if err != nil {
		return usageError{err}
	}
	specs, err := grammar.Serve.check()
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", c.Config, err)}
	}
	file := grammar.Serve.file
	for _, text := range file.Warnings {
		fmt.Fprintf(std.err, "%s: warning: %s\n", c.Config, text)
	}
	for _, key := range file.Ignored {
		fmt.Fprintf(std.err, "%s: note: %s means nothing here\n", c.Config, key)
	}
	for _, s := range specs {
		if s.url != nil {
			continue
		}
		if _, err := programOf(s).Find(); err != nil {
			fmt.Fprintf(std.err, "%s: warning: mcpServers.%s.command: %v\n", c.Config, s.Name, err)
		}
	}
	fmt.Fprintf(std.out, "%s is right: %d servers\n", c.Config, len(specs))
	for _, s := range specs {
		fmt.Fprintf(std.out, "  %s  %s\n", s.Name, kindText(s))
	}
	for _, s := range file.Servers {
		if s.Disabled {
			fmt.Fprintf(std.out, "  %s  disabled\n", s.Name)
		}
	}
	return nil
}

// kindText is how a server is reached, without what may be a secret: arguments
// and the query of a URL may be.
func kindText(s spec) string {
	if s.url == nil {
		return "command " + s.Command + ", isolation " + s.Isolation
	}
	kind := s.Type
	if kind == "" {
		kind = "transport found by asking"
	}
	return s.url.Scheme + "://" + s.url.Host + s.url.EscapedPath() + ", " + kind
}
