package front

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
)

// unreadWait bounds how long net/http waits, before it answers, for what is
// left of a body that nobody wants. It is below the write timeout, which runs
// meanwhile.
const unreadWait = 5 * time.Second

// leastRate is how fast a body must come, in bytes a second, over its first
// wait of the read timeout. Both bounds together end a body that drips.
const leastRate = 16 << 10

// freeBody is what a body may have outside the budget for all.
const freeBody = 64 << 10

func tooLarge(w http.ResponseWriter, limit int64) error {
	w.Header().Set("Connection", "close")
	e := refuse(http.StatusRequestEntityTooLarge, mcp.CodeInvalidRequest, "body_size",
		"the body is larger than the limit of %d bytes (--max-message)", limit)
	e.limit = "--max-message"
	return e
}

// received is a body, and when it was read.
type received struct {
	data      []byte
	asked, at time.Time // the beginning and the end of reading
}

// readBody reads a whole body of at most limit bytes. A client has the read
// timeout for each part, so that a slow one is let go but a big body is not.
func (f *Front) readBody(w http.ResponseWriter, r *http.Request, limit int64) (_ received, err error) {
	if r.ContentLength > limit {
		return received{}, tooLarge(w, limit)
	}
	src := &bodyReader{f: f, r: r.Body, control: http.NewResponseController(w), began: time.Now()}
	defer func() { src.done(err) }()
	var body []byte
	if r.ContentLength >= 0 {
		body, err = f.readExactly(src, r.ContentLength)
	} else {
		var buf bytes.Buffer
		_, err = buf.ReadFrom(io.LimitReader(src, limit+1))
		body = buf.Bytes()
		if int64(len(body)) > limit {
			return received{}, tooLarge(w, limit)
		}
	}
	if errors.Is(err, errBudget) {
		return received{}, err
	}
	if err != nil {
		return received{}, refuse(http.StatusBadRequest, mcp.CodeParse, "body", "the body could not be read to its end")
	}
	f.cfg.Metrics.in.Add(float64(len(body)))
	return received{body, src.began, time.Now()}, nil
}

// readExactly reads n bytes. Memory is taken as they come: a client cannot have
// it by a Content-Length alone.
func (f *Front) readExactly(src *bodyReader, n int64) ([]byte, error) {
	body := f.cfg.Buffers.Get(int(min(n, readPart)) + editRoom)[:0]
	for {
		got, err := io.ReadFull(src, body[len(body):min(int64(cap(body)), n)])
		body = body[:len(body)+got]
		if err != nil || int64(len(body)) == n {
			return body, err
		}
		// It has shown that it has much to send.
		if err := src.reserve(n); err != nil {
			return nil, err
		}
		body = append(make([]byte, 0, n+editRoom), body...)
	}
}

// editRoom is left behind a body, so that ids can grow where it lies.
const editRoom = 512

// readPart is read of a body before its read deadline is renewed.
const readPart = 1 << 20

type bodyReader struct {
	f       *Front
	r       io.Reader
	control *http.ResponseController
	began   time.Time
	n       int64 // bytes read
	counted int64 // of those, in the budget for all
}

var errBudget = over("bodies that are being read", http.StatusServiceUnavailable, "body_budget", errors.New("too many large bodies are being read"), 1)

func (b *bodyReader) Read(p []byte) (int, error) {
	timeout := b.f.cfg.ReadTimeout
	at := b.began.Add(timeout)
	if b.n > 0 {
		at = time.Now().Add(timeout)
	}
	if last := b.began.Add(timeout + time.Duration(b.n)*time.Second/leastRate); last.Before(at) {
		at = last
	}
	_ = b.control.SetReadDeadline(at) // not every writer has deadlines
	n, err := b.r.Read(p[:min(len(p), readPart)])
	b.n += int64(n)
	if full := b.reserve(b.n); full != nil {
		return n, full
	}
	return n, err
}

// reserve counts n bytes of this body, those counted before included, in the
// budget for all.
func (b *bodyReader) reserve(n int64) error {
	over := n - freeBody - b.counted
	if over <= 0 {
		return nil
	}
	b.counted += over
	if b.f.reading.Add(over) > b.f.cfg.BodyBudget {
		return errBudget
	}
	return nil
}

// done takes the deadline back after a body that was read to its end: the
// server watches the connection from now on.
func (b *bodyReader) done(err error) {
	b.f.reading.Add(-b.counted)
	var at time.Time
	if err != nil {
		at = time.Now().Add(unreadWait)
	}
	_ = b.control.SetReadDeadline(at)
}

// checkContentType wants JSON. A missing type is fine where no browser can be
// behind it, for a page of another site may send a POST without one.
func checkContentType(h http.Header) error {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return refuse(http.StatusUnsupportedMediaType, mcp.CodeInvalidRequest, "content_encoding", "compressed bodies are not taken")
	}
	ct := h.Get("Content-Type")
	if ct == "application/json" || ct == "" && h.Get("Origin") == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(ct)
	if (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter)) && media == "application/json" {
		return nil
	}
	return refuse(http.StatusUnsupportedMediaType, mcp.CodeInvalidRequest, "content_type", "the Content-Type must be application/json")
}

// readAccept tells what the client takes. ok is false where neither JSON nor
// an event stream is.
func readAccept(h http.Header) (takes live.Takes, ok bool) {
	values := h["Accept"]
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return live.TakesBoth, true
	}
	accept := strings.TrimSpace(strings.Join(values, ","))
	if accept == "" {
		return live.TakesBoth, true
	}
	js, ev := allows(accept, "application", "json"), allows(accept, "text", "event-stream")
	switch {
	case js && ev:
		return live.TakesBoth, true
	case js:
		return live.TakesJSON, true
	case ev:
		return live.TakesSSE, true
	}
	return 0, false
}

// allows tells whether the most specific range of an Accept header that fits
// a media type allows it (RFC 9110, section 12.5.1).
func allows(accept, typ, sub string) bool {
	best, allowed := 0, false
	for part := range strings.SplitSeq(accept, ",") {
		media, params, _ := strings.Cut(part, ";")
		t, s, _ := strings.Cut(strings.ToLower(strings.TrimSpace(media)), "/")
		rank := 0
		switch {
		case t == typ && s == sub:
			rank = 3
		case t == typ && s == "*":
			rank = 2
		case t == "*" && s == "*":
			rank = 1
		}
		if rank > best {
			best, allowed = rank, !zeroQuality(params)
		}
	}
	return allowed
}

func zeroQuality(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return err == nil && q == 0
		}
	}
	return false
}
