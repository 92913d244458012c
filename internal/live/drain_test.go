package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestDrainRefusesWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		s, conn := r.open()
		rd, k := r.call(s, 1, TakesBoth)
		rd.Keep()
		callID := rd.EventID(0)
		own, _ := s.Listen()
		own.Keep()
		ownID := own.EventID(0)
		l, lrd := r.legacy()
		defer l.HungUp(nil)
		defer lrd.Close()
		early, erd, err := r.m.OpenLegacy(t.Context(), r.b, "p")
		if err != nil {
			t.Fatal(err)
		}
		defer early.HungUp(nil)
		defer erd.Close()
		if err := l.CallOnOwn(request(2, "x")); err != nil {
			t.Fatal(err)
		}
		lk := <-r.srv.last().calls

		drained := make(chan struct{})
		go func() {
			defer close(drained)
			r.m.Drain(context.Background())
		}()
		synctest.Wait()
		if got := drain(own); got != ErrDraining.Error() || conn.hears() != "[true false]" {
			t.Errorf("own stream: %s, the server hears %s", got, conn.hears())
		}
		own.Close()
		for what, try := range map[string]func() error{
			"call":           func() error { _, err := s.Call(TakesBoth, []upstream.Request{request(3, "x")}); return err },
			"legacy call":    func() error { return l.CallOnOwn(request(3, "x")) },
			"initialize":     func() error { return early.Initialize(request(3, "initialize")) },
			"listen":         func() error { _, err := s.Listen(); return err },
			"resume own":     func() error { _, err := s.Resume(ownID); return err },
			"legacy session": func() error { _, _, err := r.m.OpenLegacy(t.Context(), r.b, "p"); return err },
		} {
			if err := try(); !errors.Is(err, ErrDraining) {
				t.Errorf("%s: %v", what, err)
			}
		}
		// What the calls in flight need still passes.
		if err := s.Send(message(`{"jsonrpc":"2.0","id":9,"result":{}}`)); err != nil {
			t.Errorf("response: %v", err)
		}
		if err := l.Send(message(logText)); err != nil {
			t.Errorf("notification: %v", err)
		}
		again, err := s.Resume(callID)
		if err != nil {
			t.Fatal("the stream of a call in flight:", err)
		}
		rd.Close()
		k.answer(`{}`)
		lk.answer(`{}`)
		if got := drain(again) + drain(lrd); strings.Count(got, `"result"`) != 2 {
			t.Errorf("answers: %s", got)
		}
		again.Close()
		<-drained
	})
}
