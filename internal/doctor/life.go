package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// errNoAnswer: none came in time, or the process ended before. The evidence of
// its life tells why.
var errNoAnswer = errors.New("no answer")

// life is one process from start to end. It is a way to its server, and a
// child.Handler.
type life struct {
	x     *exam
	proc  *child.Process // set before begun is closed
	begun chan struct{}
	born  time.Time
	gone  chan struct{} // closed by Exit
	// hopeless is closed when what the process wrote shows that it will not answer.
	hopeless chan struct{}

	mu      sync.Mutex
	next    int
	waiting map[string]chan wire.Message // by raw id; room for the one answer
	seen    evidence
	sound   chan struct{} // closed at the next line; nil: nobody listens
}

// start starts a process of the server.
func (x *exam) start() (*life, error) {
	l := &life{x: x, begun: make(chan struct{}), gone: make(chan struct{}), hopeless: make(chan struct{}), born: time.Now(), waiting: make(map[string]chan wire.Message)}
	program := x.server.Program
	program.MaxLine = x.server.MaxMessage
	p, err := x.o.Supervisor.Start(program, l)
	if err != nil {
		return nil, err
	}
	l.proc = p
	close(l.begun)
	return l, nil
}

// Line implements child.Handler.
func (l *life) Line(line []byte) {
	<-l.begun
	msg, err := wire.Parse(line)
	if err != nil {
		fixed := []byte(strings.ToValidUTF8(string(line), "\uFFFD"))
		if msg, err = wire.Parse(fixed); err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.seen.noise(l.x.veil, line, err)
			l.soundLocked()
			if l.x.framing(&l.seen) != nil || l.x.badMessage(&l.seen) != nil {
				l.giveUpLocked()
			}
			return
		}
	}
	switch msg.Kind {
	case wire.Request:
		l.answer(&msg)
	case wire.Response:
		l.take(msg)
	}
}

// take gives a response to whoever waits for it.
func (l *life) take(msg wire.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen.responses++
	l.soundLocked()
	id := string(msg.Bytes(msg.ID))
	answer, ok := l.waiting[id]
	if !ok {
		l.seen.stray(l.x.veil, id, &msg)
		l.giveUpLocked()
		return
	}
	delete(l.waiting, id)
	answer <- msg
}

// answer answers a request of the server, unless it is one of our own that comes
// back.
func (l *life) answer(msg *wire.Message) {
	l.mu.Lock()
	_, ours := l.waiting[string(msg.Bytes(msg.ID))]
	if ours {
		l.seen.echo = true
		l.soundLocked()
		l.giveUpLocked()
	}
	l.mu.Unlock()
	if !ours {
		_, _ = l.proc.Write(ownAnswer(msg)) // of one that is gone, its exit tells more
	}
}

// ownAnswer is the answer to a request of a server: there is no client here that
// it could ask anything.
func ownAnswer(msg *wire.Message) []byte {
	id := msg.Bytes(msg.ID)
	if string(msg.MethodName()) == "ping" {
		return wire.AppendResult(nil, id, []byte("{}"))
	}
	return wire.AppendError(nil, id, mcp.CodeMethodNotFound, "signalbox doctor has no client to ask", nil)
}

// Oversize implements child.Handler.
func (l *life) Oversize(head, _ []byte, size int64) {
	<-l.begun
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen.oversize = max(l.seen.oversize, size)
	l.seen.noise(l.x.veil, head, nil)
}

// Exit implements child.Handler.
func (l *life) Exit(info child.ExitInfo) {
	l.mu.Lock()
	l.seen.exit = info
	l.mu.Unlock()
	close(l.gone)
}

// ask implements asker. Its error is errNoAnswer; the answer may still come.
func (l *life) ask(ctx context.Context, method, params string) (wire.Message, error) {
	return l.await(ctx, l.send(method, params, ""))
}

// send writes a request and returns where its answer will be. padding makes its
// id longer.
func (l *life) send(method, params, padding string) chan wire.Message {
	answer := make(chan wire.Message, 1)
	l.mu.Lock()
	l.next++
	id := fmt.Sprintf(`"signalbox-%d%s"`, l.next, padding)
	l.waiting[id] = answer
	l.mu.Unlock()
	// Of one that is gone, the exit tells more than this error does.
	_, _ = l.proc.Write([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + "}"))
	return answer
}

// await waits for an answer, until the process has ended or ctx is over. Once it
// shows that there will be none, it waits only a moment more.
func (l *life) await(ctx context.Context, answer chan wire.Message) (wire.Message, error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	hopeless := l.hopeless
	for over := false; !over; {
		select {
		case msg := <-answer:
			return msg, nil
		case <-l.gone:
			over = true
		case <-ctx.Done():
			over = true
		case <-hopeless:
			hopeless = nil
			grace, cancel := l.x.o.limit(ctx, "grace", graceWait)
			defer cancel()
			ctx = grace
		case <-look.C:
			l.look()
		}
	}
	select { // it may have come at the same moment
	case msg := <-answer:
		return msg, nil
	default:
		return wire.Message{}, errNoAnswer
	}
}

// look looks for what shows without a line on stdout that no answer will come.
func (l *life) look() {
	e := evidence{}
	partial := l.proc.Partial()
	e.finish(l.x.veil, partial, strings.TrimSuffix(l.proc.Tail(), partial))
	if l.x.framing(&e) != nil || l.x.question(&e) != nil || l.x.elsewhere(&e) != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.giveUpLocked()
	}
}

func (l *life) giveUpLocked() {
	select {
	case <-l.hopeless:
	default:
		close(l.hopeless)
	}
}

// tell implements way.
func (l *life) tell(_ context.Context, method string) error {
	_, _ = l.proc.Write([]byte(`{"jsonrpc":"2.0","method":"` + method + `"}`)) // as in send
	return nil
}

func (l *life) negotiated(mcp.Revision) {}

// heard is closed when the process says anything from now on.
func (l *life) heard() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sound = make(chan struct{})
	return l.sound
}

func (l *life) soundLocked() {
	if l.sound != nil {
		close(l.sound)
		l.sound = nil
	}
}

// quiet tells that the process has written nothing to stdout.
func (l *life) quiet() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen.lines == 0 && !l.seen.echo && l.seen.responses == 0 && l.proc.Partial() == ""
}

// alive tells whether the process has not ended.
func (l *life) alive() bool {
	select {
	case <-l.gone:
		return false
	default:
		return true
	}
}

// stop ends the process and returns all that was seen of it.
func (l *life) stop() *evidence {
	l.mu.Lock()
	l.seen.ended = !l.alive() // by itself
	before := l.seen.responses
	l.mu.Unlock()
	l.proc.Stop()
	select {
	case <-l.proc.Done():
	case <-l.x.ctx.Done():
		l.proc.Kill()
		<-l.proc.Done()
	}
	partial := l.proc.Partial()
	if len(partial) >= 1000 { // its beginning is cut off, and may be of a secret
		_, partial, _ = strings.Cut(partial, " ")
	}
	stderr := strings.TrimSuffix(l.proc.Tail(), l.proc.Partial())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen.late = l.seen.responses > before
	l.seen.finish(l.x.veil, partial, stderr)
	return &l.seen
}
