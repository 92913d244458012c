package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/cluster"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// eventTime bounds the wait for one event of a stream.
const eventTime = 20 * time.Second

// TestReplicasNeedNoStickiness has three replicas behind nginx, which goes round robin
// and keeps no connection. Its log is the proof that consecutive requests of a session,
// the GET that resumes and the POST that answers a question were served by different
// replicas, and still all came right.
func TestReplicasNeedNoStickiness(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	nginx := c.Balanced(t)
	for _, server := range []string{cluster.Private, cluster.Shared, cluster.OnWeb} {
		t.Run(server, func(t *testing.T) {
			s := cluster.Open(t, nginx.URL, server)
			t.Run("requests", func(t *testing.T) { consecutive(t, nginx, s) })
			t.Run("resume", func(t *testing.T) { resumedElsewhere(t, nginx, s) })
			if server != cluster.Shared {
				t.Run("answer", func(t *testing.T) { answeredElsewhere(t, nginx, s) })
			}
			if status := s.Delete(nginx.URL); status != http.StatusNoContent {
				t.Errorf("DELETE: %d", status)
			}
			for _, r := range c.Replicas {
				replica := r.URL
				cluster.Await(t, eventTime, "the session is gone at "+replica, func() string {
					if a := s.Echo(replica); a.Status != http.StatusNotFound {
						return a.String()
					}
					return ""
				})
			}
		})
	}
	for _, wrong := range c.Web.Wrong() {
		t.Error(wrong)
	}
	t.Run("sse", func(t *testing.T) { legacyElsewhere(t, c, nginx) })
}

// consecutive requests go to one replica after the other.
func consecutive(t *testing.T, nginx *cluster.Nginx, s *cluster.Client) {
	var tags []string
	for range 9 {
		a := s.Call(nginx.URL, "progress", `"n":2`)
		if wrong := s.Echoed(a); wrong != "" {
			t.Error(wrong)
		}
		tags = append(tags, a.Tag)
	}
	served := make(map[string]int)
	last := ""
	for _, line := range nginx.ByTag(tags...) {
		served[line.Replica]++
		if line.Session != s.ID || line.Status != "200" || line.Replica == last {
			t.Errorf("%+v, after a request to %s", line, last)
		}
		last = line.Replica
	}
	if len(served) != 3 {
		t.Errorf("served by %v, want all three", served)
	}
}

// resumedElsewhere breaks a stream off and fetches the rest of it through another replica.
func resumedElsewhere(t *testing.T, nginx *cluster.Nginx, s *cluster.Client) {
	call := cluster.Tag()
	stream := s.Stream(http.MethodPost, nginx.URL, call, "", cluster.CallBody(call, "hold", s.Owner, call, `"key":"`+call+`"`))
	seen, err := stream.Find("notifications/progress", eventTime)
	if err != nil || seen.ID == "" {
		t.Fatalf("%+v, %v", seen, err)
	}
	stream.Close()
	resume := cluster.Tag()
	rest := s.Stream(http.MethodGet, nginx.URL, resume, seen.ID, "")
	defer rest.Close()
	release := s.Call(nginx.URL, "release", `"key":"`+call+`"`)
	if release.Status != http.StatusOK {
		t.Fatal(release)
	}
	answer, err := rest.Find(`"result"`, eventTime)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := cluster.CheckText(s.Owner, call, answer.Data); wrong != "" {
		t.Error(wrong)
	}
	if e, err := rest.Next(eventTime); err != io.EOF {
		t.Errorf("after the answer: %+v, %v", e, err)
	}
	differ(t, nginx, call, resume, release.Tag)
}

// answeredElsewhere answers a question of the server through another replica than the
// one that has the stream with the question.
func answeredElsewhere(t *testing.T, nginx *cluster.Nginx, s *cluster.Client) {
	call := cluster.Tag()
	stream := s.Stream(http.MethodPost, nginx.URL, call, "", cluster.CallBody(call, "ask", s.Owner, call, `"method":"roots/list"`))
	question, err := stream.Find(`"roots/list"`, eventTime)
	if err != nil {
		t.Fatal(err)
	}
	m, err := rawclient.ParseMessage([]byte(question.Data))
	if err != nil {
		t.Fatal(err)
	}
	answer := cluster.Tag()
	a := s.Post(nginx.URL, answer, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"roots":[],"answer":"`+answer+`"}}`)
	if a.Status != http.StatusAccepted {
		t.Fatal(a)
	}
	result, err := stream.Find(`"result"`, eventTime)
	if err != nil || !strings.Contains(result.Data, `"answer":"`+answer+`"`) || !strings.Contains(result.Data, `"id":"`+call+`"`) {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := stream.Next(eventTime); err != io.EOF {
		t.Error(err)
	}
	differ(t, nginx, call, answer)
}

// differ wants each request to have gone to another replica than the one before it.
func differ(t *testing.T, nginx *cluster.Nginx, tags ...string) {
	t.Helper()
	last := ""
	for _, line := range nginx.ByTag(tags...) {
		t.Logf("%-4s %s %s by %s", line.Method, line.Path, line.Tag, line.Replica)
		if line.Replica == last {
			t.Errorf("%+v went to the replica of the one before", line)
		}
		last = line.Replica
	}
}

// legacyElsewhere has sessions of the older transport, whose stream is at one replica
// while their messages come to any.
func legacyElsewhere(t *testing.T, c *cluster.Cluster, nginx *cluster.Nginx) {
	for _, server := range []string{cluster.Private, cluster.Shared, cluster.OnWeb} {
		client := rawclient.New(nginx.URL)
		t.Cleanup(client.Close)
		owner := cluster.Tag()
		s, err := client.LegacyAt(t.Context(), cluster.Path(server, "sse"), cluster.Owner(owner))
		if err != nil {
			t.Fatalf("%s: %v", server, err)
		}
		for range 6 {
			tag := cluster.Tag()
			ctx, cancel := context.WithTimeout(t.Context(), eventTime)
			m, err := s.Call(ctx, `"`+tag+`"`, "tools/call", `{"name":"echo","arguments":{"owner":"`+owner+`","tag":"`+tag+`"}}`)
			cancel()
			if err != nil {
				t.Fatalf("%s: %v", server, err)
			}
			if wrong := cluster.CheckText(owner, tag, string(m.Raw)); wrong != "" {
				t.Error(wrong)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		served := make(map[string]bool)
		for _, line := range nginx.Log() {
			if line.Method == http.MethodPost && strings.HasSuffix(line.Path, "/servers/"+server+"/messages") {
				served[line.Replica] = true
			}
		}
		if len(served) != len(c.Replicas) {
			t.Errorf("%s: messages went to %v", server, served)
		}
	}
}
