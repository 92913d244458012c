package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
)

// message is one JSON-RPC message: its members by name, each as the bytes that came.
type message map[string]json.RawMessage

// method is the decoded method, or empty for a response.
func (m message) method() string { return text(m["method"]) }

// text decodes a JSON string; anything else is the empty string.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// reader reads lines of any length and keeps a record of them.
type reader struct {
	in     *bufio.Reader
	record *os.File // nil: no record
}

func newReader(in io.Reader, record string) (*reader, error) {
	r := &reader{in: bufio.NewReaderSize(in, 64<<10)}
	if record == "" {
		return r, nil
	}
	f, err := os.OpenFile(record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	r.record = f
	return r, err
}

// next returns the messages of the next line: one, or several for a batch. At the end
// of input it returns io.EOF.
func (r *reader) next() ([]message, error) {
	line, err := r.in.ReadBytes('\n')
	if len(line) == 0 {
		return nil, err
	}
	if r.record != nil {
		if _, err := r.record.Write(line); err != nil {
			return nil, err
		}
	}
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil, nil
	}
	if line[0] == '[' {
		var batch []message
		err := json.Unmarshal(line, &batch)
		return batch, err
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, err
	}
	return []message{m}, nil
}

// writer writes messages to stdout, one at a time, and misbehaves as it was told.
type writer struct {
	o   *options
	mu  sync.Mutex
	out *bufio.Writer // guarded by mu
	// foreign numbers the ids that nobody used; guarded by mu
	foreign int
}

func newWriter(out io.Writer, o *options) *writer {
	return &writer{o: o, out: bufio.NewWriterSize(out, 64<<10)}
}

// line writes what need not be a message.
func (w *writer) line(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeLocked(b)
	w.out.Flush()
}

func (w *writer) writeLocked(b []byte) {
	w.out.Write(b)
	if w.o.crlf {
		w.out.WriteString("\r\n   \r\n")
		return
	}
	w.out.WriteByte('\n')
}

// request writes a request, or a notification where id is nil.
func (w *writer) request(id json.RawMessage, method string, params json.RawMessage) {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0"`)
	member(&b, "id", id)
	member(&b, "method", quote(method))
	member(&b, "params", params)
	b.WriteByte('}')
	w.line(b.Bytes())
}

// respond answers anything but a call.
func (w *writer) respond(id json.RawMessage, a answer) { w.line(a.encode(id)) }

// respondCall answers a tools/call, where misbehaviour shows.
func (w *writer) respondCall(id json.RawMessage, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.o.noise {
		w.writeLocked([]byte("noise " + strconv.Itoa(i) + " {not json}"))
	}
	if w.o.foreignID {
		w.foreign++
		id = quote("nobody-" + strconv.Itoa(w.foreign))
	}
	b := a.encode(id)
	if w.o.batch {
		b = append(append([]byte{'['}, b...), ']')
	}
	w.writeLocked(b)
	if w.o.answerTwice {
		w.writeLocked(b)
	}
	w.out.Flush()
}

// answer is a result or an error, as JSON.
type answer struct {
	result json.RawMessage
	err    json.RawMessage
	idLast bool // put the id behind the result
}

func (a answer) encode(id json.RawMessage) []byte {
	b := bytes.NewBuffer(make([]byte, 0, len(a.result)+len(a.err)+len(id)+64))
	b.WriteString(`{"jsonrpc":"2.0"`)
	if !a.idLast {
		member(b, "id", id)
	}
	member(b, "result", a.result)
	member(b, "error", a.err)
	if a.idLast {
		member(b, "id", id)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func failure(code int, reason string) answer {
	return answer{err: json.RawMessage(`{"code":` + strconv.Itoa(code) + `,"message":` + string(quote(reason)) + `}`)}
}

// member appends a member to an object that has one already.
func member(b *bytes.Buffer, name string, value json.RawMessage) {
	if value == nil {
		return
	}
	b.WriteString(`,"` + name + `":`)
	b.Write(value)
}

func quote(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string fails
	}
	return b
}

func isSyntax(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}
