package live

import (
	"errors"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/audit"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		replied, failed, refused bool
		reason                   error
		want                     string
	}{
		{replied: true, want: audit.OK},
		{replied: true, failed: true, want: audit.Error},
		{reason: upstream.ErrCancelled, want: audit.Cancelled},
		{reason: upstream.CallTimeout, want: audit.Timeout},
		{reason: upstream.Errorf(-32602, "policy", "no such tool"), refused: true, want: "refused:policy"},
		{reason: upstream.Errorf(-32603, "exited", "the server exited"), want: audit.Error},
		{reason: errors.New("other"), refused: true, want: audit.Error},
	} {
		if got := outcome(c.replied, c.failed, c.refused, c.reason); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
