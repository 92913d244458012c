package remote

import (
	"bytes"
	"context"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Authorizer gives the access token that a server wants of Signalbox.
type Authorizer interface {
	// Token is one that is valid, as far as is known.
	Token(ctx context.Context) (string, error)
	// Refused says that the server did not take a token (401).
	Refused(token string)
}

// authorized is head with a token, which is returned too.
func (s *Server) authorized(head []byte) ([]byte, string, error) {
	if s.cfg.Authorizer == nil {
		return head, "", nil
	}
	token, err := s.cfg.Authorizer.Token(s.ctx)
	if err == nil && !visible(token) {
		err = errBadToken
	}
	if err != nil {
		return nil, "", upstream.Errorf(mcp.CodeInternal, "unauthorized", "no access token for the server could be had; check its client-credentials: %v", err)
	}
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	out := make([]byte, 0, len(head)+len(token)+40)
	out = append(append(out, line...), "\r\n"...)
	out = appendHeader(out, "Authorization", "Bearer "+token)
	return append(out, rest...), token, nil
}
