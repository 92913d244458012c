package doctor

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/url"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
)

// Server says what to try out: a program, or a URL.
type Server struct {
	Name string

	Program child.Spec // for a command: all that a start needs; Args empty for a URL

	URL     *url.URL // nil for a command
	Address *url.URL // scheme and host to go to instead of the URL's; may be nil
	Header  http.Header
	Type    string // "http" or "sse" where only that is spoken; "": found by asking
	// Token gives the access token to log in with; nil: none. Refused tells that
	// it was not taken.
	Token func(context.Context) (string, error)

	Era          string // "legacy" or "modern" where the configuration says so; else found by asking
	StartTimeout time.Duration
	MaxMessage   int
	Secrets      []string // what must not be shown, whoever says it
}

// Options of an examination. Supervisor, Version and LookupEnv are required.
type Options struct {
	Supervisor *child.Supervisor
	Version    string                           // of Signalbox
	LookupEnv  func(name string) (string, bool) // of Signalbox's own environment

	roots *x509.CertPool // nil: the system's. For tests
	// limit makes the context of one wait; nil: context.WithTimeout. For tests.
	limit func(ctx context.Context, what string, d time.Duration) (context.Context, context.CancelFunc)
}

// Bounds of one examination.
const (
	discoverWait = 10 * time.Second // for server/discover, and for the handshake of a server that answered it
	listWait     = 30 * time.Second // for each page of tools/list
	coaxWait     = 2 * time.Second  // for an answer that lies in a buffer
	graceWait    = 5 * time.Second  // for an answer after all, of a process that has shown that it cannot give one
	lookEvery    = time.Second      // at what a process that is silent wrote elsewhere
	maxPages     = 100              // of tools/list
	maxNames     = 1000             // of tools that a report holds
	maxStderr    = 20               // lines
	maxNoise     = 3                // lines
	maxQuote     = 200              // characters of what a server wrote, in one quotation
)

// Finding is one thing that is wrong.
type Finding struct {
	Case string `json:"case"` // a short word that does not change
	Text string `json:"text"` // one line: what is wrong, and what to do
}

// Error makes a Finding what an attempt failed with.
func (f *Finding) Error() string { return f.Text }

// Tools are those that a server offers.
type Tools struct {
	Count int      `json:"count"`
	Names []string `json:"names"` // at most 1000, each at most 200 characters
}

// Noise is what stood on stdout between the messages.
type Noise struct {
	Lines int      `json:"lines"`
	First []string `json:"first,omitempty"`
}

// Report is what one examination found. Everything in it may be shown: secrets
// and control characters are gone.
type Report struct {
	Server    string `json:"server"`
	Transport string `json:"transport"` // "stdio", "streamable-http", "sse"; "http" while not known
	Target    string `json:"target"`    // the program, or the URL

	Well    bool      `json:"well"`
	Finding *Finding  `json:"finding,omitempty"` // nil if it is well
	Notes   []Finding `json:"notes,omitempty"`   // what is not as it should be, and does no harm here

	Eras         []string `json:"eras,omitempty"`      // "handshake", "per-request"
	Revisions    []string `json:"revisions,omitempty"` // that it named, newest first
	Name         string   `json:"name,omitempty"`
	Version      string   `json:"version,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	Tools        *Tools   `json:"tools,omitempty"` // nil: it does not offer any
	StartMillis  int64    `json:"start_ms"`        // until its first answer; 0: none came

	Noise  Noise    `json:"noise"`
	Stderr []string `json:"stderr,omitempty"` // its last lines
}

// exam is one examination. One goroutine runs it.
type exam struct {
	ctx    context.Context
	server Server
	o      Options
	veil   *veil
	r      *Report
}

// Examine tries a server out. It ends what it has started, also when ctx is over.
func Examine(ctx context.Context, s Server, o Options) Report {
	if o.limit == nil {
		o.limit = func(ctx context.Context, _ string, d time.Duration) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, d)
		}
	}
	r := Report{Server: s.Name, Target: target(s), Transport: "stdio"}
	x := &exam{ctx: ctx, server: s, o: o, veil: newVeil(s), r: &r}
	var fault *Finding
	if s.URL != nil {
		r.Transport = "http"
		fault = x.address()
	} else {
		fault = x.command()
	}
	if ctx.Err() != nil {
		fault = &Finding{"stopped", "the examination was stopped before its end"}
	}
	r.Finding, r.Well = fault, fault == nil
	return r
}

// wait is a context for one answer.
func (x *exam) wait(what string, d time.Duration) (context.Context, context.CancelFunc) {
	return x.o.limit(x.ctx, what, d)
}

func (x *exam) note(kind, text string) { x.r.Notes = append(x.r.Notes, Finding{kind, text}) }

// quote is what a server wrote, fit for a sentence.
func (x *exam) quote(s string) string { return inQuotes(x.veil.text(s, maxQuote)) }

// inQuotes is for what went through the veil already.
func inQuotes(s string) string { return `"` + s + `"` }
