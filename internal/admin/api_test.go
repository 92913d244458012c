package admin

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/observe"
)

func TestSessions(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("<b>Inspector</b>")
	var list SessionList
	r.read("/api/v1/sessions", &list)
	if len(list.Sessions) != 1 {
		t.Fatalf("%+v", list)
	}
	got := list.Sessions[0]
	if got.Created.IsZero() || got.LastSeen.IsZero() || got.AgeSeconds < 0 || got.IdleSeconds < 0 || got.IdleSeconds > got.AgeSeconds {
		t.Errorf("times: %+v", got)
	}
	got.Created, got.LastSeen, got.AgeSeconds, got.IdleSeconds = time.Time{}, time.Time{}, 0, 0
	want := Session{
		Session: s.Hash(), Server: "srv", Principal: "key alice", Transport: "streamable", Era: "handshake", Revision: "2025-11-25", State: "open",
		Client: "<b>Inspector</b>", ClientVersion: "2",
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}

	var detail SessionDetail
	r.read("/api/v1/sessions/"+s.Hash(), &detail)
	var lines []string
	for _, m := range detail.Messages {
		line := strings.Join([]string{m.Direction, m.Kind, m.Method, m.ID}, " ")
		if m.Bytes == 0 || m.Time.IsZero() || (m.Millis != nil) != (m.Kind == "response") {
			t.Errorf("%+v", m)
		}
		lines = append(lines, line)
	}
	if want := `from_client request initialize 1|to_client response initialize 1|from_client request tools/call "<i>"|to_client response tools/call "<i>"`; strings.Join(lines, "|") != want {
		t.Errorf("messages: %s", strings.Join(lines, "|"))
	}
	text := r.ask("GET", "/api/v1/sessions/"+s.Hash()).Body.String()
	for _, secret := range []string{"hunter2", s.ID(), "<b>", `"secret"`} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in %s", secret, text)
		}
	}
}

func TestEndSession(t *testing.T) {
	r := newRig(t, nil)
	for _, end := range []struct{ method, suffix string }{{"DELETE", ""}, {"POST", "/end"}} {
		path := "/api/v1/sessions/" + r.open("c").Hash()
		if w := r.ask(end.method, path+end.suffix); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
			t.Errorf("%s: %d %s", end.method, w.Code, w.Body)
		}
		for _, again := range []string{"GET", end.method} {
			suffix := end.suffix
			if again == "GET" {
				suffix = ""
			}
			if w := r.ask(again, path+suffix); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"error":"this process has no session`) {
				t.Errorf("then %s: %d %s", again, w.Code, w.Body)
			}
		}
	}
	if n := len(r.live.Views()); n != 0 {
		t.Errorf("%d sessions live", n)
	}
}

func TestReplicas(t *testing.T) {
	var list ReplicaList
	newRig(t, nil).read("/api/v1/replicas", &list)
	if len(list.Replicas) != 1 || list.Replicas[0] != (Replica{Self: true, Version: "v1"}) || list.Error != "" {
		t.Errorf("alone: %+v", list)
	}
	newRig(t, func(c *Config) { c.Replicas = alone }).read("/api/v1/replicas", &list)
	if len(list.Replicas) != 2 || list.Replicas[0].LeaseSeconds != 9.5 || list.Replicas[0].Version != "v1" || list.Replicas[1].Version != "" {
		t.Errorf("two: %+v", list)
	}
	r := newRig(t, func(c *Config) { c.Replicas = cutOff })
	list = ReplicaList{}
	r.read("/api/v1/replicas", &list)
	if len(list.Replicas) != 1 || list.Error == "" || strings.Contains(list.Error, "secret") {
		t.Errorf("cut off: %+v", list)
	}
}

func TestSeriesAndRefusals(t *testing.T) {
	r := newRig(t, nil)
	now := time.Now()
	r.rec.Called(now)
	r.rec.Added(now, 1500*time.Microsecond)
	r.rec.Refused(now, observe.Incident{Reason: "accept"})
	r.rec.Dropped(now, observe.Incident{Reason: "noise", Server: "srv", Detail: "<script>"})
	var s Series
	r.read("/api/v1/series", &s)
	if s.BucketSeconds != 10 || len(s.Buckets) != 90 {
		t.Fatalf("%v s, %d buckets", s.BucketSeconds, len(s.Buckets))
	}
	calls, most := 0, 0.0
	for _, b := range s.Buckets {
		calls += b.Calls
		if (b.MaxMS != nil) != (b.Measured > 0) || (b.MedianMS != nil) != (b.P99MS != nil) {
			t.Errorf("%+v", b)
		}
		if b.MaxMS != nil {
			most = math.Max(most, *b.MaxMS)
		}
	}
	if calls != 1 || most != 1.5 {
		t.Errorf("%d calls, %v ms", calls, most)
	}
	var list RefusalList
	r.read("/api/v1/refusals", &list)
	if len(list.Refusals) != 2 || list.Refusals[0].What != "dropped" || list.Refusals[0].Detail != "<script>" || list.Refusals[1].Reason != "accept" || list.Refusals[1].Count != 1 {
		t.Errorf("%+v", list)
	}
	var servers ServerList
	if r.read("/api/v1/servers", &servers); len(servers.Servers) != 1 {
		t.Errorf("%+v", servers)
	}
	// What is empty is a list, not null.
	for _, path := range []string{"/api/v1/sessions", "/api/v1/refusals"} {
		if text := newRig(t, nil).ask("GET", path).Body.String(); !strings.Contains(text, ":[]") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

func TestPaths(t *testing.T) {
	r := newRig(t, nil)
	for path, status := range map[string]int{"/": 302, "/status": 200, "/status/": 200, "/metrics": 200, "/api/v1": 404, "/status/x": 404, "/api/v1/nothing": 404} {
		if w := r.ask("GET", path); w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
	if w := r.ask("PUT", "/api/v1/servers"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", w.Code)
	}
}
