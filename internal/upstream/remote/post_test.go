package remote

import (
	"net/http"
	"strings"
	"testing"
)

func TestNotifications(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
		fails  string
	}{
		{"202", status(202), ""},
		{"204", status(204), ""},
		{"200 empty", status(200), ""},
		{"200 with a body", writeAs("application/json", `{"jsonrpc":"2.0","id":null,"result":{}}`), ""},
		{"200 with a stream that ends", writeAs("text/event-stream", ": x\n\n"), ""},
		{"400", status(400), "HTTP 400"},
		{"500", status(500), "HTTP 500"},
		{"reset", cutOff, "may not have reached"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				s.handle("notifications/x", tt.answer)
				err := c.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
				if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v", err)
				}
				if n := s.count("notifications/x"); n != 1 {
					t.Errorf("sent %d times", n)
				}
				c.call(list)
			})
		})
	}
}
