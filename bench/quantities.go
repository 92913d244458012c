package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/echo"
	"github.com/signalbox-mcp/signalbox/bench/internal/load"
	"github.com/signalbox-mcp/signalbox/bench/internal/proc"
)

const (
	mib       = 1 << 20
	bigReply  = 8 * mib
	bigEvery  = 250 * time.Millisecond // from one big reply to the next
	peakBytes = 16 * mib
	settle    = 3 * time.Second // from the last session to the reading of memory
	starts    = 20              // sessions or processes started in one run
)

// idleMemory measures KiB of resident set for each idle session, beyond a few that warm the
// process up. most bounds the number of sessions.
func idleMemory(withStream bool, most int) measure {
	return func(ctx context.Context, l *lab, on *running) (sample, error) {
		n := min(l.opts.memSessions, most)
		warm, err := load.Hold(on.Endpoint, 16, withStream)
		if err != nil {
			return sample{}, err
		}
		defer warm.Close()
		before, err := l.settledRSS(on)
		if err != nil {
			return sample{}, err
		}
		held, err := load.Hold(on.Endpoint, n, withStream)
		if err != nil {
			return sample{}, err
		}
		defer held.Close()
		after, err := l.settledRSS(on)
		return sample{value: float64(after-before) / 1024 / float64(n)}, err
	}
}

func (l *lab) settledRSS(on *running) (int64, error) {
	time.Sleep(settle)
	rss, _, err := proc.Memory(on.process.PID())
	return rss, err
}

// besideBig measures how many times the usual p99 16 sessions see while another session gets
// replies of 8 MiB, one at a time, each bigEvery. The p50 and p99 given are those beside them.
func besideBig(ctx context.Context, l *lab, on *running) (sample, error) {
	plan := load.Plan{Endpoint: on.Endpoint, Sessions: 16, Bytes: 200, Warm: l.opts.warm, Measure: l.opts.measure}
	usual, err := load.Run(ctx, plan)
	if err != nil {
		return sample{}, err
	}
	plan.Beside = func(ctx context.Context) error { return bigReplies(ctx, on) }
	beside, err := load.Run(ctx, plan)
	if err != nil {
		return sample{}, err
	}
	p99 := load.Quantile(beside.Calls, 0.99)
	return sample{
		value: float64(p99) / float64(load.Quantile(usual.Calls, 0.99)),
		p50:   load.Quantile(beside.Calls, 0.5), p99: p99,
	}, nil
}

func bigReplies(ctx context.Context, on *running) error {
	s, err := load.Open(on.Endpoint, load.Streamable, time.Now().Add(time.Minute))
	if err != nil {
		return err
	}
	defer s.End()
	calls := load.NewCalls("big", "big-reply-", echo.TagLen, `,"bytes":`+strconv.Itoa(bigReply))
	tick := time.NewTicker(bigEvery)
	defer tick.Stop()
	var want []byte
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		reply, err := s.Call(calls.Next())
		if err != nil {
			return err
		}
		want = echo.Fill(want[:0], calls.Payload(), bigReply)
		if err := calls.Check(reply.Response, want); err != nil {
			return err
		}
	}
}

// peak measures the growth of the peak resident set over one call with a 16 MiB message, in
// multiples of it. tool says which way the message goes: size in, big out, echo both.
func peak(tool string) measure {
	return func(_ context.Context, _ *lab, on *running) (sample, error) {
		s, err := load.Open(on.Endpoint, load.Streamable, time.Now().Add(time.Minute))
		if err != nil {
			return sample{}, err
		}
		defer s.End()
		if err := bigCall(s, "echo", 200); err != nil {
			return sample{}, err
		}
		pid := on.process.PID()
		if err := proc.ResetPeak(pid); err != nil {
			return sample{}, err
		}
		before, _, err := proc.Memory(pid)
		if err != nil {
			return sample{}, err
		}
		if err := bigCall(s, tool, peakBytes); err != nil {
			return sample{}, err
		}
		_, after, err := proc.Memory(pid)
		return sample{value: float64(after-before) / peakBytes}, err
	}
}

func bigCall(s load.Session, tool string, size int) error {
	sent, extra := size, ""
	if tool == "big" {
		sent, extra = echo.TagLen, `,"bytes":`+strconv.Itoa(size)
	}
	calls := load.NewCalls(tool, "peak-", sent, extra)
	reply, err := s.Call(calls.Next())
	if err != nil {
		return err
	}
	answer := reply.Response
	switch tool {
	case "big":
		return calls.Check(answer, echo.Fill(nil, calls.Payload(), size))
	case "size":
		if want := echo.SizeContent(calls.Payload()); !bytes.Contains(answer, want) {
			return fmt.Errorf("the server got another message than was sent: answer %.160s, want %s", answer, want)
		}
		return calls.Check(answer, calls.Payload()[:echo.TagLen])
	}
	return calls.Check(answer, calls.Payload())
}

// initialize measures the median time from connect to the answer to notifications/initialized
// of a new session, in ms.
func initialize(ctx context.Context, _ *lab, on *running) (sample, error) {
	var calls []load.Sample
	for range starts {
		if ctx.Err() != nil {
			return sample{}, context.Cause(ctx)
		}
		start := time.Now()
		s, err := load.Open(on.Endpoint, load.Streamable, start.Add(startTimeout))
		if err != nil {
			return sample{}, err
		}
		calls = append(calls, load.Sample{Start: start, Took: time.Since(start)})
		s.End()
		time.Sleep(endWait) // as when the server is started alone, none is ending meanwhile
	}
	return startSample(calls), nil
}

// endWait is longer than a process takes to end after its session.
const endWait = 50 * time.Millisecond

func startSample(calls []load.Sample) sample {
	p50 := load.Quantile(calls, 0.5)
	return sample{value: p50.Seconds() * 1000, p50: p50, p99: load.Quantile(calls, 0.99)}
}

// ownStart measures the same for the server's process without anything in between.
func ownStart(ctx context.Context, l *lab, _ *running) (sample, error) {
	var calls []load.Sample
	for range starts {
		start := time.Now()
		took, err := startServer(ctx, l.bin("echoserver"), start)
		if err != nil {
			return sample{}, err
		}
		calls = append(calls, load.Sample{Start: start, Took: took})
	}
	return startSample(calls), nil
}

func startServer(ctx context.Context, program string, start time.Time) (took time.Duration, err error) {
	cmd := exec.CommandContext(ctx, program)
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close(), cmd.Wait()) }()
	if _, err := in.Write([]byte(load.Initialize + "\n")); err != nil {
		return 0, err
	}
	if _, err := bufio.NewReader(out).ReadSlice('\n'); err != nil {
		return 0, err
	}
	if _, err := in.Write([]byte(load.Initialized + "\n")); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}

// firstByte measures ms from a slow call's request to the first byte of its response.
func firstByte(_ context.Context, _ *lab, on *running) (sample, error) {
	s, err := load.Open(on.Endpoint, load.Streamable, time.Now().Add(startTimeout))
	if err != nil {
		return sample{}, err
	}
	defer s.End()
	calls := load.NewCalls("sleep", "slow-", 200, "")
	start := time.Now()
	reply, err := s.Call(calls.Next())
	if err != nil {
		return sample{}, err
	}
	took := time.Since(start)
	if err := calls.Check(reply.Response, calls.Payload()); err != nil {
		return sample{}, err
	}
	if took < echo.SleepFor {
		return sample{}, fmt.Errorf("answered after %v, before the server did", took)
	}
	return sample{value: reply.First.Sub(start).Seconds() * 1000}, nil
}
