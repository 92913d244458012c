package remote

import (
	"net/http"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestAskInlineBegunLate: who waits has no more patience when its goroutine comes to run. The
// request is sent all the same, and has all the time that a call may take.
func TestAskInlineBegunLate(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		asked(t, srv, askList) // there is a connection
		s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			reply(w, r, `{}`)
		})
		sink := newSink(t)
		req := request(t, askTool)
		req.Inline = true
		call, err := srv.Ask(req, sink)
		must(t, err)
		if call.(upstream.Runner).Run(time.Now()) {
			t.Error("it runs in the goroutine of who has no time")
		}
		must(t, sink.end())
		if got := sink.frame(); got != result("2", `{}`) {
			t.Errorf("got %s", got)
		}
	})
}
