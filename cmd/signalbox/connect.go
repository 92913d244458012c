package main

import (
	"context"
	"fmt"

	"github.com/signalbox-mcp/signalbox/internal/gcpace"
	"github.com/signalbox-mcp/signalbox/internal/stdio"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
	"github.com/signalbox-mcp/signalbox/internal/upstream/remote"
)

// connectCmd is a stdio server for one desktop client, in front of a URL.
type connectCmd struct {
	remoteFlags
	limitFlags
	LogLevel  string `default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
	LogFormat string `default:"auto" enum:"auto,text,json" help:"text or json; auto: text on a terminal."`
	URL       string `arg:"" help:"The server's URL."`
}

// run serves std.in and std.out until the client closes its end. Only messages
// go to standard output; all else goes to standard error.
func (c *connectCmd) run(ctx context.Context, std streams) error {
	u, err := serverURL(c.URL)
	if err == nil {
		err = c.check()
	}
	header, headerErr := c.headers()
	switch {
	case err != nil:
		return usageError{err}
	case headerErr != nil:
		return usageError{headerErr}
	case len(c.ForwardHeader) > 0:
		return usageError{fmt.Errorf("--forward-header: a client on stdin has no headers")}
	}
	log := newLogger(std.err, c.LogLevel, c.LogFormat)
	gcpace.Start(gcSlack)
	server := newRemote(remote.Config{
		Name: hostName(u), URL: u, Header: header, Reinitialize: true,
		StartTimeout: c.StartTimeout, CallTimeout: c.CallTimeout, CallLimit: c.CallLimit, MaxMessage: int(c.MaxMessage),
	}, process.NewMetrics(), log)
	defer server.Close() // says goodbye to the server
	return stdio.Serve(ctx, std.in, std.out, stdio.Options{Server: server, MaxMessage: int(c.MaxMessage), Log: log})
}
