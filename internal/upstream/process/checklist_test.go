package process

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// The items of the routing checklist, by number. Where an item is about HTTP
// (S13, S22) or about documentation (S23), the part of this package is here.

func TestS01ResponseReachesOnlyTheSessionThatAsked(t *testing.T) { transcripts(t, "s01-*.txtar") }
func TestS02WireIDCarriesTheRoute(t *testing.T)                  { transcripts(t, "s02-*.txtar") }
func TestS04OriginalIDAndTypeComeBack(t *testing.T)              { transcripts(t, "s04-*.txtar") }
func TestS08NothingToEvict(t *testing.T)                         { transcripts(t, "s08-*.txtar") }
func TestS09ForeignAndLateResponsesAreDropped(t *testing.T)      { transcripts(t, "s09-*.txtar") }
func TestS10IDSpelledLikeARoute(t *testing.T)                    { transcripts(t, "s10-*.txtar") }
func TestS11EqualIDsAnsweredOutOfOrder(t *testing.T)             { transcripts(t, "s11-*.txtar") }
func TestS12CancelHitsOnlyOwnCalls(t *testing.T)                 { transcripts(t, "s12-*.txtar") }
func TestS13ResponseToASharedProcessIsRefused(t *testing.T)      { transcripts(t, "s13-*.txtar") }
func TestS14ListChangedReachesAllRebuilt(t *testing.T)           { transcripts(t, "s14-*.txtar") }
func TestS15AttributedOrDropped(t *testing.T)                    { transcripts(t, "s15-*.txtar") }
func TestS16PingIsAnswered(t *testing.T)                         { transcripts(t, "s16-*.txtar") }
func TestS17RequestsAreRefused(t *testing.T)                     { transcripts(t, "s17-*.txtar") }
func TestS19NothingIsReplayed(t *testing.T)                      { transcripts(t, "s19-*.txtar") }
func TestS20OwnProbesReachNoClient(t *testing.T)                 { transcripts(t, "s20-*.txtar") }

// S05, S07: digits above 2^53 and 2^64, and negative ids, are lines of this one.
func TestS05LargeIntegersComeBackDigitForDigit(t *testing.T) { transcripts(t, "s04-id-types.txtar") }
func TestS07NegativeIDsWork(t *testing.T)                    { transcripts(t, "s04-id-types.txtar") }

// S03: the session whose route is used is the one that the call was started
// on, and its id is read once: a message that has two is none.
func TestS03RouteIsThatOfTheSessionUsed(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) {
		a, b := w.ready(handshake), w.open()
		for range 10 {
			for _, c := range []*client{a, b} {
				c.call("1", "m", "{}")
				got := w.proc().got()
				if part := c.conn.(*conn).part; len(got) != 1 || !strings.HasPrefix(idOf(got[0]), `"`+part+`.`) {
					t.Errorf("a call of %s went out as %q", part, got)
				}
			}
		}
	})
	if _, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`)); err == nil {
		t.Error("a request with two ids passes")
	}
}

// S06: a fractional id never gets here from a client, nor from a server.
func TestS06FractionalIDsAreRefused(t *testing.T) {
	for _, id := range []string{"1.5", "1.0", "1e3", "-0.1", "1E0"} {
		_, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"m"}`))
		var refused *wire.Error
		if !errors.As(err, &refused) || refused.Code != mcp.CodeInvalidRequest {
			t.Errorf("id %s: %v", id, err)
		}
	}
	inBubble(t, true, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		_, call := c.call("1", "m", "{}")
		w.proc().says(`{"jsonrpc":"2.0","id":1.0,"result":{}}`)
		synctest.Wait()
		demand(t, call, "open")
		if got := w.dropped(); got[DropNoise] != 1 {
			t.Errorf("dropped %v", got)
		}
	})
}

// S21: of all that is not for b, nothing is delivered to b: the first thing
// that comes out of its streams is a sentinel that was sent last, down the same
// pipe. (Every transcript ends like this.)
func TestS21NonDeliveryIsProvedByASentinel(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) {
		a, b := w.ready(handshake), w.open()
		var got []string
		b.events.note = func(_, what string, data []byte) { got = append(got, what+" "+string(data)) }
		b.events.set(true)
		_, of := a.call("1", "m", `{"_meta":{"progressToken":1}}`)
		id := idOf(w.proc().got()[0])
		token := strings.Split(id, "|")[0] + `"`
		_, ofB := b.call("1", "m", `{"_meta":{"progressToken":1}}`)
		ofB.note = b.events.note
		for _, line := range []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
			`{"jsonrpc":"2.0","id":` + id + `,"result":{"secret":"of a"}}`,
			`{"jsonrpc":"2.0","id":` + id + `,"result":{"secret":"of a"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"secret":"of nobody"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"secret"}}`,
			`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"r://x"}}`,
			listChanged, // the sentinel
		} {
			w.proc().says(line)
		}
		synctest.Wait()
		demand(t, of, "of a")
		if len(got) != 1 || got[0] != "loose "+listChanged {
			t.Errorf("b got %q", got)
		}
	})
}

// S22 is about HTTP; here two sessions that use the same ids and tokens at the
// same time each see only their own.
func TestS22EachSeesOnlyItsOwn(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) { runModel(t, w, 22, 2, 500) })
}
