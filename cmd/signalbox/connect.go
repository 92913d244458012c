package main

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/signalbox-mcp/signalbox/internal/config"
	"github.com/signalbox-mcp/signalbox/internal/gcpace"
	"github.com/signalbox-mcp/signalbox/internal/stdio"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
	"github.com/signalbox-mcp/signalbox/internal/upstream/remote"
)

// connectCmd is a stdio server for one desktop client, in front of a URL.
type connectCmd struct {
	remoteFlags
	limitFlags
	Era       string `default:"auto" enum:"auto,legacy,modern" help:"Protocol era of the server: legacy (initialize, up to 2025-11-25), modern (2026-07-28), or auto: found out."`
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
	log, _ := newLogger(std.err, c.LogLevel, c.LogFormat)
	gcpace.Start(gcSlack)
	server := newRemote(remote.Config{
		Name: hostName(u), URL: u, Header: header, Reinitialize: true,
		StartTimeout: c.StartTimeout, CallTimeout: c.CallTimeout, CallLimit: c.CallLimit, MaxMessage: int(c.MaxMessage),
	}, process.NewMetrics(), log)
	key := make([]byte, 32) // what is sealed is good for as long as the client's pipe
	rand.Read(key)          // never fails (crypto/rand, Go 1.24)
	e, err := newEras(key, nil)
	if err != nil {
		return err
	}
	both := e.both(spec{Server: config.Server{Name: hostName(u), Era: c.Era}, url: u, limits: c.limitFlags}, httpLegs(server, u.String(), header, false), log)
	defer both.Close() // says goodbye to the server
	return stdio.Serve(ctx, std.in, std.out, stdio.Options{Server: both, MaxMessage: int(c.MaxMessage), Log: log})
}
