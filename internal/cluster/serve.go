package cluster

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// maxIncoming bounds the connections at the peer listener, those of strangers
// included, who have handshakeTimeout to show a certificate.
const maxIncoming = 1024

// server is the peer listener and what came in by it.
type server struct {
	// Static after construction.
	listener net.Listener
	tls      *tls.Config
	base     *http.Server // settings, and the way to end HTTP/2 connections
	http2    *http2.Server
	members  *members
	metrics  *Metrics
	log      *slog.Logger

	wg     sync.WaitGroup // connections
	mu     sync.Mutex
	ending bool
	conns  map[net.Conn]bool // connection → whether it is admitted
}

func newServer(l net.Listener, own *tls.Certificate, handler http.Handler, m *members) (*server, error) {
	s := &server{
		listener: l, members: m, metrics: m.metrics, log: m.log, conns: make(map[net.Conn]bool),
		tls: &tls.Config{
			MinVersion:             tls.VersionTLS13,
			NextProtos:             []string{alpn},
			Certificates:           []tls.Certificate{*own},
			ClientAuth:             tls.RequestClientCert, // that there is none is counted in admit
			SessionTicketsDisabled: true,                  // each connection shows its certificate
			// Small first records help browsers; here they cost large messages.
			DynamicRecordSizingDisabled: true,
		},
		base: &http.Server{
			Handler:        handler,
			MaxHeaderBytes: headerLimit,
			ErrorLog:       slog.NewLogLogger(errorLog{m.log.Handler()}, slog.LevelDebug),
		},
		http2: &http2.Server{
			MaxConcurrentStreams:         maxStreams,
			MaxReadFrameSize:             frameSize,
			MaxUploadBufferPerConnection: connWindow,
			MaxUploadBufferPerStream:     streamWindow,
		},
	}
	s.http2.ReadIdleTimeout, s.http2.PingTimeout, s.http2.WriteByteTimeout = pings(m.lease)
	return s, http2.ConfigureServer(s.base, s.http2)
}

// run accepts connections until the listener is closed. It is a goroutine of
// the node.
func (s *server) run() {
	for pause := time.Duration(0); ; {
		conn, err := s.listener.Accept()
		switch {
		case err == nil:
			pause = 0
			s.take(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default: // such as too many open files
			s.log.Error("the peer listener cannot accept a connection; trying on", "err", err)
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-s.members.life.Done():
				return
			}
		}
	}
}

// take serves conn in a goroutine, if there is room.
func (s *server) take(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending || len(s.conns) >= maxIncoming {
		s.metrics.refuse(refusedConnections)
		_ = conn.Close()
		return
	}
	s.conns[conn] = false
	s.wg.Go(func() { s.serve(conn) })
}

// serve admits a connection, and then serves HTTP/2 on it.
func (s *server) serve(raw net.Conn) {
	defer func() {
		_ = raw.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, raw)
	}()
	b := newBatch(raw)
	conn := tls.Server(b, s.tls)
	if reason := s.admit(conn); reason != "" {
		s.metrics.refuse(reason)
		return
	}
	s.mu.Lock()
	s.conns[raw] = true
	ending := s.ending
	s.mu.Unlock()
	if !ending {
		s.http2.ServeConn(peerConn{conn, b}, &http2.ServeConnOpts{BaseConfig: s.base})
	}
}

// admit makes the handshake and returns why conn is refused, "" if it is not.
func (s *server) admit(conn *tls.Conn) (reason string) {
	ctx, cancel := context.WithTimeout(s.members.life, handshakeTimeout)
	defer cancel()
	if conn.HandshakeContext(ctx) != nil {
		return refusedHandshake
	}
	ctx, cancel = context.WithTimeout(s.members.life, handshakeTimeout)
	defer cancel()
	cs := conn.ConnectionState()
	switch {
	case len(cs.PeerCertificates) == 0:
		return refusedNoCert
	case cs.NegotiatedProtocol != alpn:
		return refusedProtocol
	}
	_, err := s.members.admit(ctx, sha256.Sum256(cs.PeerCertificates[0].Raw))
	switch {
	case errors.Is(err, ErrPeer):
		return refusedUnknown
	case err != nil:
		return refusedStore
	}
	return ""
}

// goAwayPause is how often connections are told to end: one may have begun just
// after they were.
const goAwayPause = 250 * time.Millisecond

// end takes no new connections and requests, and waits for those in flight
// until ctx ends; then it cuts them off.
func (s *server) end(ctx context.Context) {
	_ = s.listener.Close()
	s.closeConns(func(admitted bool) bool { return !admitted })
	done := make(chan struct{})
	go s.wait(done)
	for {
		_ = s.base.Shutdown(ctx) // sends GOAWAY; it has no connections to wait for
		select {
		case <-done:
			return
		case <-time.After(goAwayPause):
		case <-ctx.Done():
			s.closeConns(func(bool) bool { return true })
			<-done
			return
		}
	}
}

func (s *server) wait(done chan struct{}) {
	s.wg.Wait()
	close(done)
}

func (s *server) closeConns(which func(admitted bool) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	for conn, admitted := range s.conns {
		if which(admitted) {
			_ = conn.Close()
		}
	}
}

// servePeer serves a request that another replica forwarded.
func (n *Node) servePeer(w http.ResponseWriter, r *http.Request) {
	from, err := readOrigin(r.Header)
	if err != nil {
		n.metrics.refuse(refusedHeaders)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), originKey{}, from))
	r.RemoteAddr = from.remote
	n.handler.ServeHTTP(w, r)
}

// errorLog takes what net/http has to say: of connections that break off, which
// is no news, and of handlers that panic, which is.
type errorLog struct{ slog.Handler }

func (h errorLog) Enabled(context.Context, slog.Level) bool { return true }

func (h errorLog) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "panic") {
		r.Level = slog.LevelError
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
