package cluster

import (
	"io"
	"net"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
)

// A peer that leaves has not touched what came after its GOAWAY: the client may
// try again, and is not told that the request may have run.
func TestRequestBehindGoAwayWasNotProcessed(t *testing.T) {
	for _, taken := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		done := make(chan error, 1)
		go func() {
			server, err := l.Accept()
			if err == nil {
				err = leaveAtOnce(server, taken)
			}
			done <- err
		}()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		transport, err := newTransport(DefaultLease)
		if err != nil {
			t.Fatal(err)
		}
		cc, err := transport.NewClientConn(client)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://peer/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := cc.RoundTrip(req)
		if err == nil {
			res.Body.Close()
			t.Fatal("an answer came")
		}
		if got := notProcessed(err); got == taken {
			t.Errorf("taken %t: not processed %t: %v", taken, got, err)
		}
		client.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// leaveAtOnce answers the first request by a GOAWAY that counts it as taken, or
// not, and then by the end of the connection.
func leaveAtOnce(conn net.Conn, taken bool) error {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if err := framer.WriteSettings(); err != nil {
				return err
			}
		case *http2.HeadersFrame:
			last := uint32(0)
			if taken {
				last = frame.StreamID
			}
			return framer.WriteGoAway(last, http2.ErrCodeNo, nil)
		}
	}
}
