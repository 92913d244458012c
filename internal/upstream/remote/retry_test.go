package remote

import (
	"errors"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/h1"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestRetryAfterIsKeptForBusyServers(t *testing.T) {
	for _, c := range []struct {
		status       int
		header, want string
	}{
		{429, "7", "7"},
		{503, "Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:59 GMT"},
		{503, "", ""},
		{503, "-7", ""},
		{503, "7\r\nX: y", ""},
		{503, "soon", ""},
		{500, "7", ""},
	} {
		var e *upstream.Error
		err := statusError(target{}, &h1.Response{Status: c.status, RetryAfter: c.header}, nil)
		if !errors.As(err, &e) || e.RetryAfter != c.want {
			t.Errorf("%d with %q: %v, want %q", c.status, c.header, err, c.want)
		}
	}
}
