package h1

import (
	"io"
	"net"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a connection on which the peer has said everything already.
type script struct {
	net.Conn // nil: what a test does not expect panics
	in       io.Reader
}

func (s script) Read(b []byte) (int, error)       { return s.in.Read(b) }
func (s script) Write(b []byte) (int, error)      { return len(b), nil }
func (s script) Close() error                     { return nil }
func (s script) SetDeadline(time.Time) error      { return nil }
func (s script) SetReadDeadline(time.Time) error  { return nil }
func (s script) SetWriteDeadline(time.Time) error { return nil }

// reads are ways in which the bytes of an answer may arrive.
var reads = map[string]func(io.Reader) io.Reader{
	"whole":    func(r io.Reader) io.Reader { return r },
	"by byte":  iotest.OneByteReader,
	"by half":  iotest.HalfReader,
	"with EOF": iotest.DataErrReader,
}

func scripted(in io.Reader) *Conn {
	s := script{in: in}
	return newConn(s, s)
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
