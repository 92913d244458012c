package auth

import (
	"net/http"
	"strings"
	"testing"
)

func TestRefused(t *testing.T) {
	r := newRig(t, nil)
	names := make(map[string]bool)
	for _, c := range refusals {
		if names[c.name] {
			t.Errorf("two cases are named %q", c.name)
		}
		names[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			r.t, r.limit = t, newLimiter()
			q := c.make(r.issuer)
			r.mayAsk()
			f := r.refused(c.status, c.reason, q)
			if c.status == http.StatusUnauthorized && !strings.HasPrefix(f.Challenge, "Bearer ") {
				t.Errorf("challenge %q", f.Challenge)
			}
			r.mayAsk()
			r.refused(c.status, c.reason, q) // and once more: nothing bad is remembered as good
			r.accepted(bearer(r.issuer.Token(nil)))
		})
	}
	if discoveries, _ := r.issuer.Fetches(); discoveries > 1 {
		t.Errorf("%d discoveries", discoveries)
	}
}

// TestRefusedSaysNothing holds that no log line and no error has anything of
// the credentials in it.
func TestRefusedSaysNothing(t *testing.T) {
	r := newRig(t, nil)
	for _, c := range refusals {
		q := c.make(r.issuer)
		_, err := r.Check(q, resource, nil)
		said := r.logs.String() + err.Error() + err.(*Failure).Challenge
		for _, secret := range []string{"alice", "root", "attacker", "sbx_", "YTpi"} {
			if strings.Contains(said, secret) {
				t.Fatalf("%s: %q was said:\n%s", c.name, secret, said)
			}
		}
		for p := range strings.SplitSeq(strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "), ".") {
			if len(p) > 20 && strings.Contains(said, p) {
				t.Fatalf("%s: a part of the token was said:\n%s", c.name, said)
			}
		}
	}
	if r.logs.count("request refused") == 0 {
		t.Error("nothing was logged")
	}
}
