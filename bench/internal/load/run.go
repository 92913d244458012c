package load

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// grace is how long a call may take beyond the end of a run before it counts as missing.
const grace = 10 * time.Second

// Plan says what a run does.
type Plan struct {
	Endpoint Endpoint
	Client   Client
	Sessions int
	Bytes    int // of a message's payload
	Steps    int // notifications of progress to each call, by the tool "steps"; 0: calls of "echo". Not with PerRequest
	Warm     time.Duration
	Measure  time.Duration
	// Beside, if set, runs while the sessions call, from the start of the measured time to the end of the context.
	Beside func(ctx context.Context) error
}

// Result is what a run gave; every call in it was verified.
type Result struct {
	Calls []Sample // that began and ended in the measured time, by start
	Rate  float64  // calls per second
}

// Sample is one call.
type Sample struct {
	Start time.Time
	Took  time.Duration
}

// Run has all sessions call in a closed loop. It fails on the first answer that is wrong, and
// on one that does not come.
func Run(ctx context.Context, p Plan) (Result, error) {
	callers, err := openAll(p)
	defer func() {
		endAll(callers)
	}()
	if err != nil {
		return Result{}, err
	}
	from := time.Now().Add(p.Warm)
	ctx, cancel := context.WithDeadline(ctx, from.Add(p.Measure))
	defer cancel()
	var wait sync.WaitGroup
	for _, c := range callers {
		wait.Go(func() { c.work(ctx, from); c.stopOthers(cancel) })
	}
	beside := make(chan error, 1)
	wait.Go(func() { beside <- p.runBeside(ctx, from) })
	wait.Wait()
	if err := <-beside; err != nil {
		return Result{}, fmt.Errorf("beside the calls: %w", err)
	}
	return collect(callers, p.Measure)
}

type caller struct {
	session Session
	calls   *Calls
	samples []Sample
	err     error
}

func openAll(p Plan) ([]*caller, error) {
	nonce := strings.ToLower(rand.Text()[:8])
	deadline := time.Now().Add(p.Warm + p.Measure + grace + time.Duration(p.Sessions)*200*time.Millisecond)
	var callers []*caller
	for i := range p.Sessions {
		s, err := Open(p.Endpoint, p.Client, deadline)
		if err != nil {
			return callers, fmt.Errorf("open session %d of %d: %w", i+1, p.Sessions, err)
		}
		tag := fmt.Sprintf("%s-s%04d-", nonce, i)
		callers = append(callers, &caller{session: s, calls: p.calls(tag),
			samples: make([]Sample, 0, min(1<<15, 1<<19/p.Sessions))})
	}
	return callers, nil
}

func (p Plan) calls(tag string) *Calls {
	switch {
	case p.Client == PerRequest:
		return NewPerRequestCalls(tag, p.Bytes)
	case p.Steps > 0:
		return NewProgressCalls("steps", tag, p.Bytes, p.Steps)
	}
	return NewCalls("echo", tag, p.Bytes, "")
}

// endAll ends all sessions at once, since some servers take their time.
func endAll(callers []*caller) {
	var wait sync.WaitGroup
	for _, c := range callers {
		wait.Go(c.session.End)
	}
	wait.Wait()
}

// work calls until ctx ends and keeps what falls into the time after from.
func (c *caller) work(ctx context.Context, from time.Time) {
	until, _ := ctx.Deadline()
	for ctx.Err() == nil {
		start := time.Now()
		reply, err := c.session.Call(c.calls.Next())
		end := time.Now()
		if err == nil {
			err = c.calls.Check(reply.Response, c.calls.Payload())
		}
		if err == nil {
			err = c.calls.CheckProgress(reply.Before)
		}
		if err != nil {
			c.err = err
			return
		}
		if !start.Before(from) && !end.After(until) {
			c.samples = append(c.samples, Sample{start, end.Sub(start)})
		}
	}
}

func (c *caller) stopOthers(cancel context.CancelFunc) {
	if c.err != nil {
		cancel()
	}
}

func (p Plan) runBeside(ctx context.Context, from time.Time) error {
	if p.Beside == nil {
		return nil
	}
	time.Sleep(time.Until(from))
	return p.Beside(ctx)
}

func collect(callers []*caller, measured time.Duration) (Result, error) {
	var r Result
	for i, c := range callers {
		if c.err != nil {
			return r, fmt.Errorf("session %d: %w", i+1, c.err)
		}
		r.Calls = append(r.Calls, c.samples...)
	}
	if len(r.Calls) == 0 {
		return r, fmt.Errorf("no call began and ended within %v", measured)
	}
	slices.SortFunc(r.Calls, func(a, b Sample) int { return a.Start.Compare(b.Start) })
	r.Rate = float64(len(r.Calls)) / measured.Seconds()
	return r, nil
}

// Quantile is the q-th quantile, 0 to 1, of what the calls took; 0 for none.
func Quantile(calls []Sample, q float64) time.Duration {
	if len(calls) == 0 {
		return 0
	}
	took := make([]time.Duration, len(calls))
	for i, c := range calls {
		took[i] = c.Took
	}
	slices.Sort(took)
	return took[min(len(took)-1, int(q*float64(len(took))))]
}
