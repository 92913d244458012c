// Command signalbox puts MCP servers on the network: many clients, one server
// process or one for each, and every message to exactly the session it belongs
// to.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/config"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1 // failure while running
	exitUsage = 2 // wrong usage or configuration
)

// version is set by the linker; a build from source says what it knows.
var version = ""

func main() {
	if child.RunWatchdogIfAsked() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, stop, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are those of the process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

type cli struct {
	Serve    serveCmd    `cmd:"" help:"Put an MCP server on the network: signalbox serve [flags] -- COMMAND [ARG...], or URL"`
	Check    checkCmd    `cmd:"" help:"Check a configuration file, and start nothing: signalbox check --config FILE"`
	Doctor   doctorCmd   `cmd:"" help:"Try servers out and say what is wrong with them: signalbox doctor [flags] -- COMMAND [ARG...], or URL, or --config FILE"`
	Key      keyCmd      `cmd:"" help:"Make a static key: signalbox key new NAME"`
	Connect  connectCmd  `cmd:"" help:"Be a stdio server for a desktop client, and reach a URL: signalbox connect [flags] URL"`
	Sessions sessionsCmd `cmd:"" help:"List the sessions of a running signalbox, or end one: signalbox sessions [end HASH]"`
	Servers  serversCmd  `cmd:"" help:"List the servers of a running signalbox and how they do."`
	Version  versionCmd  `cmd:"" help:"Print the version."`

	Completion completionCmd `cmd:"" help:"Print completions for a shell: signalbox completion bash|zsh|fish"`
}

type versionCmd struct{}

// usageError is a mistake of the caller: exit code 2.
type usageError struct{ error }

// run is main without the process: it returns the exit code. forget gives the
// signals back, so that a second one ends the process at once.
func run(ctx context.Context, forget func(), args []string, std streams) int {
	grammar, parsed, code, err := parse(args, std)
	var wrongFile config.Errors
	switch {
	case code >= 0: // --help has printed
		return code
	case errors.As(err, &wrongFile):
		fmt.Fprintf(std.err, "signalbox: the configuration is wrong:\n%v\n", wrongFile)
		return exitUsage
	case err != nil:
		fmt.Fprintf(std.err, "signalbox: %v\nsee: signalbox --help\n", err)
		return exitUsage
	}
	for _, text := range mistypedEnv(parsed, os.Environ()) {
		fmt.Fprintf(std.err, "signalbox: warning: %s\n", text)
	}
	switch parsed.Command() {
	case "doctor", "doctor <command>":
		err = grammar.Doctor.run(ctx, std)
	case "check":
		err = grammar.Check.run(std)
	case "key new <name>":
		err = grammar.Key.New.run(std)
	case "connect <url>":
		err = grammar.Connect.run(ctx, std)
	case "completion <shell>":
		grammar.Completion.run(parsed.Model, std)
	case "sessions list":
		err = grammar.Sessions.List.run(ctx, std)
	case "sessions end <hash>":
		err = grammar.Sessions.End.run(ctx, std)
	case "servers":
		err = grammar.Servers.run(ctx, std)
	case "version":
		fmt.Fprintf(std.out, "signalbox %s\n", versionText())
	default:
		err = grammar.Serve.run(ctx, forget, std, func() (*serveCmd, error) {
			again, _, _, err := parse(args, streams{strings.NewReader(""), io.Discard, io.Discard})
			if err != nil {
				return nil, err
			}
			return &again.Serve, nil
		})
	}
	var usage usageError
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(std.err, "signalbox: %v\n", err)
		return exitUsage
	case errors.Is(err, errUnwell): // the report has said so
		return exitError
	case err != nil:
		fmt.Fprintf(std.err, "signalbox: %v\n", err)
		return exitError
	}
	return exitOK
}

// reparse reads flags, environment and file anew.
type reparse func() (*serveCmd, error)

// parse reads flags, environment and, for serve, the file. code is that of a
// command which is done already, as --help, else -1.
func parse(args []string, std streams) (grammar *cli, parsed *kong.Context, code int, err error) {
	grammar, code = new(cli), -1
	settings := new(fileSettings)
	parser, err := kong.New(grammar,
		kong.Name("signalbox"),
		kong.Description("A proxy for the Model Context Protocol: every message reaches exactly the session it belongs to."),
		kong.DefaultEnvars("SIGNALBOX"),
		kong.Resolvers(settings),
		kong.Writers(std.out, std.err),
		kong.Exit(func(c int) { code = c }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return nil, nil, -1, err
	}
	parsed, err = parser.Parse(args)
	switch {
	case settings.err != nil:
		err = settings.err
	case err == nil:
		err = strayFlag(parsed, append(grammar.Serve.Command, grammar.Doctor.Command...)) // one of them is empty
	}
	grammar.Serve.file = settings.file
	return grammar, parsed, code, err
}

func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "devel" {
			v += "+" + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}
