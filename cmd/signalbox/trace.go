package main

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/time/rate"

	"github.com/signalbox-mcp/signalbox/internal/trace"
)

// traceTime is how long the last spans may take to be sent.
const traceTime = 2 * time.Second

// tracer makes what the flag or the standard environment ask for; nil: neither
// does.
func (c *serveCmd) tracer(log *slog.Logger) (*trace.Tracer, error) {
	if c.TraceEndpoint == "" && !trace.Wanted(os.LookupEnv) {
		return nil, nil
	}
	told := rate.NewLimiter(rate.Every(time.Minute), 1)
	t, err := trace.New(trace.Config{Endpoint: c.TraceEndpoint, Version: versionText(), Failed: func(err error) {
		if told.Allow() {
			log.Warn("traces not sent", "err", err)
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("--trace-endpoint: %w", err)
	}
	return t, nil
}
