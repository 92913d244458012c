package bridge

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Era is what a configuration says of a server.
type Era uint8

const (
	Auto   Era = iota // it is found out
	Legacy            // the handshake era
	Modern            // the per-request era
)

// answer is what is known of something that a server does or does not.
type answer uint8

const (
	unknown answer = iota
	yes
	no
)

// eras is what is known of a server. It may speak both: then each client is
// served in its own.
type eras struct {
	handshake  answer // it answers initialize with a result
	perRequest answer // server/discover lists 2026-07-28
	listsBoth  bool   // and a revision of the handshake era as well
}

// Verdicts remembers the eras of servers by what would change them: command,
// arguments, environment and binary of a process, the URL of an HTTP server. A
// configuration that is read again finds them here.
type Verdicts struct {
	mu sync.Mutex
	of map[string]eras
}

// maxVerdicts bounds the servers of old configurations that are remembered.
const maxVerdicts = 1024

func (v *Verdicts) get(key string) eras {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.of[key]
}

func (v *Verdicts) change(key string, change func(*eras)) eras {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil || len(v.of) >= maxVerdicts && v.of[key] == (eras{}) {
		v.of = make(map[string]eras)
	}
	e := v.of[key]
	change(&e)
	v.of[key] = e
	return e
}

// Discover is the request that tells the eras apart: a string id, the one
// revision, and no capability. version is Signalbox's own.
func Discover(version string) []byte {
	line := append([]byte(`{"jsonrpc":"2.0","id":"`+DiscoverID+`","method":"server/discover","params":{"_meta":{"`+mcp.MetaVersion+`":"`+string(mcp.R20260728)+
		`","`+mcp.MetaClientCapabilities+`":{},"`+mcp.MetaClientInfo+`":{"name":"signalbox","version":`), wire.AppendQuote(nil, version)...)
	return append(line, "}}}}"...)
}

// DiscoverID is the id of the request that Discover makes.
const DiscoverID = "signalbox-discover"

// Finding is what a look at a server has brought.
type Finding struct {
	PerRequest bool // it lists 2026-07-28
	Handshake  bool // it lists a revision of the handshake era
	// Reason says what the server did, for the log.
	Reason string
}

// Judge reads a server's answer to Discover. It is the list of versions that
// decides, for servers of the handshake era use the codes and results of the other,
// too; whatever is no such list, or nothing at all, is the handshake era.
func Judge(reply []byte) Finding {
	if len(reply) == 0 {
		return Finding{Reason: "no answer to server/discover"}
	}
	msg, err := wire.Parse(reply)
	if err != nil || msg.Kind != wire.Response {
		return Finding{Reason: "no response to server/discover"}
	}
	what, path := "server/discover lists ", []string{"result", "supportedVersions"}
	if msg.Error.Present() {
		code, _ := wire.Lookup(msg.Raw, "error", "code")
		what = "server/discover was refused with code " + string(code.Of(msg.Raw))
		if string(code.Of(msg.Raw)) != "-32022" {
			return Finding{Reason: what}
		}
		what, path = what+", and lists ", []string{"error", "data", "supported"}
	}
	list, ok := wire.Lookup(msg.Raw, path...)
	if !ok || msg.Raw[list.Start] != '[' {
		return Finding{Reason: what + "no versions"}
	}
	var names []string
	var f Finding
	for v := range wire.Elements(msg.Raw, list.Start) {
		name, _ := wire.Unquote(v.Of(msg.Raw))
		f.PerRequest = f.PerRequest || mcp.Revision(name) == mcp.R20260728
		f.Handshake = f.Handshake || mcp.Revision(name).Handshake()
		if len(names) < 8 {
			names = append(names, string(name[:min(len(name), 16)]))
		}
	}
	f.Reason = what + strings.Join(names, ", ")
	return f
}

// JudgeHTTP is Judge for an answer by HTTP. ok is false where the status says
// nothing of the era: who may not ask, or asks too much, or too early, learns
// nothing.
func JudgeHTTP(status int, reply []byte) (f Finding, ok bool) {
	f = Judge(reply)
	switch {
	case f.PerRequest:
		return f, true
	case status == 401 || status == 403 || status == 407 || status == 429 || status >= 500:
		return f, false
	}
	return f, true
}

// probeWait is how long a server may take to answer Discover. One that starts
// slowly and says nothing is of the handshake era, until that is contradicted.
const probeWait = 10 * time.Second

// look finds out whether the server speaks the per-request era, once for all who
// want to know. An error is none of the era.
func (s *Server) look() (eras, error) {
	key := s.key()
	s.mu.Lock()
	l := s.looking
	if l == nil {
		l = &looking{done: make(chan struct{})}
		s.looking = l
		go s.lookFor(l, key)
	}
	s.mu.Unlock()
	<-l.done
	return l.found, l.err
}

// looking is a look that others wait for.
type looking struct {
	done  chan struct{} // closed when found or err is set
	found eras
	err   error
}

func (s *Server) lookFor(l *looking, key string) {
	ctx, cancel := context.WithTimeout(s.ctx, probeWait)
	defer cancel()
	f, err := s.cfg.Probe(ctx)
	if err == nil && s.ctx.Err() != nil { // what was cut off says nothing
		err = upstream.ErrShutdown
	}
	if err == nil {
		l.found = s.cfg.Verdicts.change(key, func(e *eras) {
			e.perRequest, e.listsBoth = no, f.PerRequest && f.Handshake
			if f.PerRequest {
				e.perRequest = yes
			}
		})
		s.cfg.Log.Info("era of the server found", "per_request", f.PerRequest, "reason", f.Reason)
	} else {
		s.cfg.Log.Warn("era of the server not found", "err", err)
	}
	l.err = err
	s.mu.Lock()
	s.looking = nil
	s.mu.Unlock()
	close(l.done)
}

// known is what is known of the server now.
func (s *Server) known() eras {
	switch s.cfg.Era {
	case Legacy:
		return eras{handshake: yes, perRequest: no}
	case Modern:
		return eras{handshake: no, perRequest: yes}
	}
	return s.cfg.Verdicts.get(s.key())
}

// note changes what is known.
func (s *Server) note(change func(*eras)) {
	if s.cfg.Era == Auto {
		s.cfg.Verdicts.change(s.key(), change)
	}
}

// keyAge is how long the key of a server is good: the binary may be replaced.
const keyAge = time.Second

func (s *Server) key() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.keyed.IsZero() || now.Sub(s.keyed) > keyAge {
		s.keyText, s.keyed = s.cfg.Fingerprint(), now
	}
	return s.keyText
}

// Eras says in a word what is known of the server: "handshake", "per-request",
// "both", or "" where nobody has had to know yet.
func (s *Server) Eras() string {
	switch e := s.known(); {
	case e.perRequest == yes && e.handshake == yes:
		return "both"
	case e.perRequest == yes:
		return "per-request"
	case e.handshake == yes || e.perRequest == no:
		return "handshake"
	}
	return ""
}
