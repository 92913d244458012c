package front

import (
	"net/http"
	"strconv"
	"time"
)

// writePart bounds the bytes under one write deadline: a slow client that still
// reads is not cut off in the middle of a large message.
const writePart = 256 << 10

// write sends b in parts, each with its own deadline.
func (x *exchange) write(b []byte) error { return x.f.writeParts(x.w, x.control, b) }

func (f *Front) writeParts(w http.ResponseWriter, control *http.ResponseController, b []byte) error {
	f.cfg.Metrics.out.Add(float64(len(b)))
	for len(b) > 0 {
		n := min(len(b), writePart)
		_ = control.SetWriteDeadline(time.Now().Add(f.cfg.WriteTimeout)) // not every writer has deadlines
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// writeStatus answers without a body.
func (f *Front) writeStatus(w http.ResponseWriter, status int) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(f.cfg.WriteTimeout))
	w.WriteHeader(status)
}

// writeJSON answers with one JSON body. A client that is gone needs no report.
func (f *Front) writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_ = f.writeParts(w, http.NewResponseController(w), body)
}
