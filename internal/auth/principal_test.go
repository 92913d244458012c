package auth

import (
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestKeysNeverMeet: identities whose parts would join to the same text are apart.
func TestKeysNeverMeet(t *testing.T) {
	all := []*Principal{
		Anonymous(),
		{Kind: KindKey, Subject: "anonymous"},
		{Kind: KindKey, Subject: "a"},
		{Kind: KindKey, Subject: "a,1:b"},
		{Kind: KindToken, Issuer: "a", Subject: "b"},
		{Kind: KindToken, Issuer: "a,1:b", Subject: ""},
		{Kind: KindToken, Issuer: "a", Subject: ",1:b"},
		{Kind: KindToken, Issuer: "a:b", Subject: "c"},
		{Kind: KindToken, Issuer: "a", Subject: "b:c"},
		{Kind: KindToken, Issuer: "", Subject: "anonymous"},
		{Kind: KindToken, Issuer: "key", Subject: "a"},
		{Kind: KindToken, Issuer: "a", Subject: "é"},
		{Kind: KindToken, Issuer: "a", Subject: "e\u0301"},
		{Kind: KindToken, Issuer: "a", Subject: "B"},
		{Kind: KindCert, Issuer: "a", Subject: "b"},
		{Kind: KindCert, Issuer: "a,1:b", Subject: ""},
	}
	seen := make(map[string]int)
	for n, p := range all {
		if first, twice := seen[p.Key()]; twice {
			t.Errorf("%d and %d are both %s", first, n, p.Key())
		}
		seen[p.Key()] = n
	}
	if got, want := (&Principal{Kind: KindToken, Issuer: "https://i", Subject: "é"}).Key(), "token/9:https://i,2:é,"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if Anonymous().Key() != "anonymous" {
		t.Error(Anonymous().Key())
	}
}

// TestRefreshedToken: a new token of the same subject is the same principal.
func TestRefreshedToken(t *testing.T) {
	r := newRig(t, nil)
	first := r.accepted(bearer(r.issuer.Token(m{"jti": "1", "scope": "a"})))
	second := r.accepted(bearer(r.issuer.Token(m{"jti": "2", "scope": "b", "exp": in(time.Hour)})))
	if first == second || first.Key() != second.Key() || second.HasScopes("a") || !second.HasScopes("b") {
		t.Errorf("%+v and %+v", first, second)
	}
	if other := r.accepted(bearer(r.issuer.Token(m{"sub": "bob"}))); other.Key() == first.Key() {
		t.Error("two subjects are one")
	}
	if key := r.accepted(request("X-API-Key", r.key)); key.Key() == first.Key() || key.Key() == Anonymous().Key() {
		t.Error("a key is somebody else")
	}
}

func TestPrincipalIsNotLogged(t *testing.T) {
	p := &Principal{Kind: KindToken, Issuer: "https://i", Subject: "alice@example.com", claims: []byte(`{"email":"alice"}`)}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "principal", p)
	if said := log.String() + p.String() + fmt.Sprint(p) + fmt.Sprintf("%+v %s", p, p); strings.Contains(said, "alice") || !strings.Contains(said, "https://i") {
		t.Error(said)
	}
	if got := (&Principal{Kind: KindKey, Subject: "ci"}).String(); got != "key ci" {
		t.Error(got)
	}
}

func TestPrincipalOfPeer(t *testing.T) {
	r := newRig(t, nil)
	for _, p := range []*Principal{Anonymous(), r.accepted(request("X-API-Key", r.key)), r.accepted(bearer(r.issuer.Token(m{"scope": "a b", "sub": "é,\"1:"})))} {
		text, err := p.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		q := request("X", string(text))
		if q.Header.Get("X") != string(text) || strings.ContainsAny(string(text), " ,;\"") {
			t.Errorf("not fit for a header: %s", text)
		}
		var back Principal
		if err := back.UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
		if back.Key() != p.Key() || !reflect.DeepEqual(back.Scopes, p.Scopes) || string(back.Claims()) != string(p.Claims()) || !back.Expires.Equal(p.Expires) {
			t.Errorf("%+v came back as %+v", p, back)
		}
	}
	for _, broken := range []string{"", "!", "e30", "bnVsbA", "eyJraW5kIjoicm9vdCJ9"} {
		var p Principal
		if err := p.UnmarshalText([]byte(broken)); err == nil {
			t.Errorf("%q is taken as %+v", broken, p)
		}
	}
}

func TestFailureIsAnError(t *testing.T) {
	r := newRig(t, nil)
	before := r.counted(reasonMissing)
	f := r.refused(http.StatusUnauthorized, reasonMissing, request())
	if f.Error() != f.Message || r.counted(reasonMissing) != before+1 {
		t.Errorf("%q, counted %v", f, r.counted(reasonMissing))
	}
	if r.logs.count("refused") != 0 {
		t.Error("a client that asks how to log in is logged")
	}
}
