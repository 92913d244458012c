package httpd

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// written is what a handler's headers say about the answer itself. These are
// not written with the others.
type written struct {
	length     string
	coding     string
	connection []string

	hasLength, hasDate, hasType, hasEncoding bool
}

// appendHeader adds the handler's headers, those that frame the answer
// excepted. What could not be a header, or could be several, is made harmless
// as net/http does.
func appendHeader(b []byte, h http.Header, status int) ([]byte, written) {
	var f written
	var room [16]string
	names := room[:0]
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := h[name]
		switch name {
		case "Content-Length":
			f.length, f.hasLength = first(values), true
			continue
		case "Transfer-Encoding":
			f.coding = first(values)
			continue
		case "Connection":
			if status > 199 || status == http.StatusSwitchingProtocols {
				f.connection = values
				continue
			}
		case "Trailer":
			continue // there are none
		case "Date":
			f.hasDate = true
		case "Content-Type":
			if f.hasType = true; status == http.StatusNotModified {
				continue
			}
		case "Content-Encoding":
			f.hasEncoding = first(values) != ""
		}
		if name == "" || !all(name, isToken) {
			continue
		}
		for _, v := range values {
			b = appendField(b, name, v)
		}
	}
	return b, f
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func appendField(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	if strings.ContainsAny(value, "\r\n") {
		value = lineEnds.Replace(value)
	}
	b = append(b, strings.Trim(value, " \t\r\n")...)
	return append(b, "\r\n"...)
}

var lineEnds = strings.NewReplacer("\n", " ", "\r", " ")

func (w *response) appendStatus(b []byte, status int) []byte {
	if b = append(b, "HTTP/1.1 "...); w.x.req.ProtoMinor == 0 {
		b[len(b)-2] = '0'
	}
	b = strconv.AppendInt(b, int64(status), 10)
	if text := http.StatusText(status); text != "" {
		b = append(append(b, ' '), text...)
	} else {
		b = strconv.AppendInt(append(b, " status code "...), int64(status), 10)
	}
	return append(b, "\r\n"...)
}

func parseLength(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}

// bodyAllowed: RFC 9110, section 6.4.1.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// bodiless: nothing follows the head, whatever the handler writes.
func (w *response) bodiless() bool {
	return w.x.req.Method == http.MethodHead || !bodyAllowed(w.status)
}

// complete ends the head: how the body is framed (RFC 9112, section 6) and
// whether the connection stays. p is what is written next, behind what is held.
func (w *response) complete(o *output, p []byte, final bool) {
	f := &w.fields
	old := w.x.req.ProtoMinor == 0
	allowed := bodyAllowed(w.status)
	n := len(o.body) + len(p)
	if final && allowed && !f.hasLength && f.coding == "" && (w.x.req.Method != http.MethodHead || n > 0) {
		w.length = int64(n)
	}
	kept := old && w.keepAlive && (w.length >= 0 || w.bodiless())
	if hasToken(first(f.connection), "close") || old && !kept || w.x.ctx.c.s.stopping.Load() {
		w.close = true
	}
	if w.expected && !w.x.body.ended.Load() {
		w.close = true
	}
	if !w.close && !w.duplex && !w.x.body.drain() {
		w.close = true
	}
	if allowed && n > 0 && !f.hasType && !f.hasEncoding && f.coding == "" {
		o.head = appendField(o.head, "Content-Type", sniff(o.body, p))
	}
	if !f.hasDate {
		o.head = appendField(o.head, "Date", date(time.Now()))
	}
	switch {
	case w.length >= 0:
		if allowed {
			o.head = append(o.head, "Content-Length: "...)
			o.head = append(strconv.AppendInt(o.head, w.length, 10), "\r\n"...)
		}
	case w.bodiless():
	case old || f.coding == "identity":
		w.close = true // its end is the body's
	default:
		w.chunked = true
		o.head = append(o.head, "Transfer-Encoding: chunked\r\n"...)
	}
	o.head = w.appendConnection(o.head, kept)
	o.head = append(o.head, "\r\n"...)
}

func (w *response) appendConnection(b []byte, kept bool) []byte {
	switch {
	case w.close && w.status == http.StatusSwitchingProtocols, !w.close && len(w.fields.connection) > 0:
		for _, v := range w.fields.connection {
			b = appendField(b, "Connection", v)
		}
		return b
	case w.close && (w.x.req.ProtoMinor > 0 || hasToken(first(w.fields.connection), "close")):
		return append(b, "Connection: close\r\n"...)
	case !w.close && kept:
		return append(b, "Connection: keep-alive\r\n"...)
	}
	return b
}

// sniff guesses the type by the first bytes, which may lie in two places.
func sniff(held, p []byte) string {
	if len(held) < 512 && len(p) > 0 {
		var both [512]byte
		n := copy(both[:], held)
		n += copy(both[n:], p)
		return http.DetectContentType(both[:n])
	}
	return http.DetectContentType(held)
}

// today is a second and its text.
type today struct {
	second int64
	text   string
}

var lastDate atomic.Pointer[today]

// date is now as a Date header has it.
func date(now time.Time) string {
	second := now.Unix()
	if d := lastDate.Load(); d != nil && d.second == second {
		return d.text
	}
	d := &today{second, now.UTC().Format(http.TimeFormat)}
	lastDate.Store(d)
	return d.text
}
