package auth

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth/authtest"
)

func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		old := r.issuer.Key()
		first := r.issuer.Token(nil)
		r.accepted(bearer(first))
		time.Sleep(refreshPause)

		r.issuer.Rotate("ES256")
		r.accepted(bearer(r.issuer.Token(nil))) // a new key works at once
		r.accepted(bearer(first))               // and the old one still does

		r.issuer.Rotate("ES256") // within the pause: at the latest after it
		third := bearer(r.issuer.Token(m{"sub": "carol"}))
		if f := r.refused(http.StatusServiceUnavailable, reasonKid, third); f.RetryAfter != refreshPause || f.Challenge != "" {
			t.Errorf("Retry-After %v, challenge %q", f.RetryAfter, f.Challenge)
		}
		time.Sleep(refreshPause)
		r.accepted(third)

		// A key that is withdrawn stops working, also for tokens that are known.
		r.issuer.Publish(r.issuer.Key())
		fourth := old.Sign(authtest.JSON(m{"alg": "ES256", "kid": old.ID}), authtest.JSON(r.issuer.Claims(m{"exp": in(time.Hour)})))
		r.accepted(bearer(fourth))
		time.Sleep(refreshAge)
		r.accepted(newest(r)) // starts the fetch in the background
		synctest.Wait()
		r.refused(bad, reasonKid, bearer(fourth))
	})
}

// newest is a token of the newest key.
func newest(r *rig) *http.Request { return bearer(r.issuer.Token(m{"exp": in(time.Hour)})) }

// TestKnownTokenOfWithdrawnKey: the token is in the cache when its key goes.
func TestKnownTokenOfWithdrawnKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		q := bearer(r.issuer.Token(nil))
		r.accepted(q)
		k := r.issuer.Rotate("ES256")
		r.issuer.Publish(k)
		r.accepted(q)
		time.Sleep(refreshPause)
		r.accepted(bearer(r.issuer.Token(nil))) // an unknown key: fetches
		r.refused(http.StatusServiceUnavailable, reasonKid, q)
		time.Sleep(refreshPause)
		r.refused(bad, reasonKid, q)
	})
}

// TestSameKidNewKey: an issuer that uses a name again is understood all the same.
func TestSameKidNewKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		old := bearer(r.issuer.Token(nil))
		r.accepted(old)
		k := authtest.NewKey(r.issuer.Key().ID, "ES256")
		r.issuer.Publish(k)
		q := bearer(k.Sign(authtest.JSON(m{"alg": "ES256", "kid": k.ID}), authtest.JSON(r.issuer.Claims(nil))))
		r.refused(bad, reasonSignature, q)
		time.Sleep(refreshPause)
		r.accepted(q)
		r.refused(bad, reasonSignature, old)
	})
}

// TestHammering: whatever tokens come, the issuer is asked once in refreshPause.
func TestHammering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var wg sync.WaitGroup
		for second := range 60 {
			for n := range 20 {
				q := bearer(r.issuer.Sign(m{"kid": fmt.Sprintf("kid-%d-%d", second, n)}, authtest.JSON(r.issuer.Claims(nil))))
				q.RemoteAddr = fmt.Sprintf("[2001:db8:0:%x::1]:80", second)
				wg.Go(func() {
					_, err := r.Check(q, resource, nil)
					if f, ok := err.(*Failure); !ok || f.Reason != reasonKid {
						t.Errorf("got %v", err)
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Second)
		}
		discoveries, fetches := r.issuer.Fetches()
		if discoveries != 1 || fetches > 13 || fetches < 2 {
			t.Errorf("%d discoveries and %d fetches of keys in 60 s", discoveries, fetches)
		}
	})
}

// TestSingleFlight: many requests at once make one fetch.
func TestSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		gate := make(chan struct{})
		r.issuer.Handle("/tenant/keys", func(w http.ResponseWriter, _ *http.Request) {
			<-gate
			w.Write(r.issuer.KeySet())
		})
		var wg sync.WaitGroup
		for range 50 {
			q := bearer(r.issuer.Token(nil))
			wg.Go(func() {
				if _, err := r.Check(q, resource, nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		if d, k := r.issuer.Fetches(); d != 1 || k != 1 {
			t.Errorf("%d discoveries, %d fetches", d, k)
		}
	})
}

func TestDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.issuer.SetDown(true)
		r.Warm()
		synctest.Wait()
		q := bearer(r.issuer.Token(m{"exp": in(time.Hour)}))
		f := r.refused(http.StatusServiceUnavailable, reasonUnavailable, q)
		if f.RetryAfter != time.Second || f.Challenge != "" {
			t.Errorf("retry after %v, challenge %q", f.RetryAfter, f.Challenge)
		}
		r.refused(bad, reasonExpired, bearer(r.issuer.Token(m{"exp": 1}))) // bad whatever the issuer says
		r.accepted(request("X-API-Key", r.key))                            // and a key needs no issuer
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			r.refused(http.StatusServiceUnavailable, reasonUnavailable, q)
		}
		if r.logs.count("cannot be fetched") != r.logs.count("level=DEBUG")+1 {
			t.Errorf("the outage was not logged once:\n%s", r.logs)
		}
		if failed := r.counted("failed"); failed < 10 || failed > 20 {
			t.Errorf("%v attempts in a minute", failed)
		}
		r.issuer.SetDown(false)
		time.Sleep(refreshPause)
		r.accepted(q)
	})
}

func TestDownLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		known := bearer(r.issuer.Token(m{"exp": in(3 * time.Hour)}))
		fresh := func() *http.Request { return bearer(r.issuer.Token(m{"iat": in(-1), "exp": in(time.Hour)})) }
		r.accepted(known)
		old := r.issuer.Key()
		r.issuer.SetDown(true)
		r.issuer.Rotate("ES256")
		added := fresh()
		time.Sleep(refreshPause)
		r.refused(http.StatusServiceUnavailable, reasonUnavailable, added)
		sign := func() *http.Request {
			return bearer(old.Sign(authtest.JSON(m{"alg": "ES256", "kid": old.ID}), authtest.JSON(r.issuer.Claims(nil))))
		}
		for range 10 {
			time.Sleep(5 * time.Minute)
			r.accepted(known)
			r.accepted(sign())
			synctest.Wait()
		}
		forged := authtest.NewKey(old.ID, "ES256") // bad, whether or not the issuer can be asked
		r.refused(bad, reasonSignature, bearer(forged.Sign(authtest.JSON(m{"alg": "ES256", "kid": old.ID}), authtest.JSON(r.issuer.Claims(nil)))))
		time.Sleep(9 * time.Minute)
		r.accepted(known)
		time.Sleep(time.Minute) // the keys are older than an hour
		r.refused(http.StatusServiceUnavailable, reasonUnavailable, known)
		r.refused(http.StatusServiceUnavailable, reasonUnavailable, sign())
		r.issuer.SetDown(false)
		time.Sleep(refreshPause)
		r.accepted(known)
	})
}

// TestHangingIssuer: a request waits for so long and no longer, and a client
// that leaves does not end the fetch for the others.
func TestHangingIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.issuer.Handle("/tenant/keys", func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
		started := time.Now()
		r.refused(http.StatusServiceUnavailable, reasonUnavailable, bearer(r.issuer.Token(nil)))
		if waited := time.Since(started); waited != fetchTimeout {
			t.Errorf("waited %v", waited)
		}
	})
}

// TestBadKeySet: a key set that cannot be used leaves the old one in place.
func TestBadKeySet(t *testing.T) {
	for name, doc := range map[string]string{"empty": `{"keys":[]}`, "no JSON": `<html>`, "no set": `[]`, "no keys": `{}`, "a shared secret": `{"keys":[{"kty":"oct","kid":"a","k":"AAAA"}]}`,
		"a private key, RFC 8037 A.1": `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`,
		"keys twice":                  `{"keys":[],"keys":[]}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				r.accepted(bearer(r.issuer.Token(nil)))
				r.issuer.Handle("/tenant/keys", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(doc)) })
				time.Sleep(refreshAge)
				r.accepted(bearer(r.issuer.Token(nil)))
				synctest.Wait()
				r.accepted(bearer(r.issuer.Token(nil)))
				if r.counted("failed") != 1 {
					t.Errorf("%v failures", r.counted("failed"))
				}
			})
		})
	}
}

// TestKeysMove: the place of the keys is looked up anew when they are not there.
func TestKeysMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.accepted(bearer(r.issuer.Token(nil)))
		r.issuer.Handle("/tenant/keys", http.NotFound)
		r.issuer.Handle("/tenant/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
			w.Write(authtest.JSON(m{"issuer": issuerName, "jwks_uri": issuerName + "/moved/keys"}))
		})
		r.issuer.Rotate("ES256")
		q := bearer(r.issuer.Token(nil))
		time.Sleep(refreshPause)
		r.refused(http.StatusServiceUnavailable, reasonUnavailable, q)
		time.Sleep(firstRetry)
		r.accepted(q)
	})
}

// TestRefreshSeesNewerKeys: who looked at keys that have been replaced since
// gets the new ones, and no fetch is made for that.
func TestRefreshSeesNewerKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.accepted(bearer(r.issuer.Token(nil)))
		i := r.issuers[issuerName]
		old := i.keys.Load()
		time.Sleep(refreshPause)
		r.issuer.Rotate("ES256")
		r.accepted(bearer(r.issuer.Token(nil)))
		_, before := r.issuer.Fetches()
		got, err := i.refresh(t.Context(), old)
		if err != nil || got == old || got != i.keys.Load() {
			t.Errorf("got %v, %v", got, err)
		}
		if _, after := r.issuer.Fetches(); after != before {
			t.Error("fetched again")
		}
	})
}

// TestManyKeys: of a set that is too large the first are taken.
func TestManyKeys(t *testing.T) {
	r := newRig(t, nil)
	good := r.issuer.Key()
	r.issuer.Handle("/tenant/keys", func(w http.ResponseWriter, _ *http.Request) {
		list := []any{good.JWK()}
		for range 2 * maxKeys {
			list = append(list, good.JWK())
		}
		w.Write(authtest.JSON(m{"keys": list}))
	})
	r.accepted(bearer(r.issuer.Token(nil)))
	if n := len(r.issuers[issuerName].keys.Load().keys); n != maxKeys {
		t.Errorf("%d keys", n)
	}
}

// TestIssuersApart: the keys of one issuer prove nothing for another.
func TestIssuersApart(t *testing.T) {
	a, b := authtest.Start(t, resource), authtest.Start(t, resource)
	r := newRig(t, func(c *Config) { c.Issuers, c.HTTPClient = []string{a.Name, b.Name}, nil })
	alice, other := r.accepted(bearer(a.Token(nil))), r.accepted(bearer(b.Token(nil)))
	if alice.Key() == other.Key() {
		t.Error("the subject of one issuer is that of another")
	}
	r.issuer = a
	r.refused(bad, reasonSignature, bearer(a.Token(m{"iss": b.Name})))
	r.refused(bad, reasonSignature, bearer(b.Token(m{"iss": a.Name})))
}
