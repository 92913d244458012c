package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/cluster"
)

// TestOperateReplicas: any replica names all with their leases, and a session of an HTTP
// server that an operator ends at one of them has ended at all. It is run as an
// operator does it, in a terminal.
func TestOperateReplicas(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	s := cluster.Open(t, c.Replicas[0].URL, cluster.OnWeb)
	for _, r := range c.Replicas {
		if wrong := s.Echoed(s.Echo(r.URL)); wrong != "" {
			t.Fatal(wrong)
		}
	}
	var hash string
	for i, r := range c.Replicas {
		var list struct {
			Replicas []struct {
				Self  bool
				Lease float64 `json:"lease_seconds"`
			}
			Error string
		}
		status, body := cluster.Get(r.AdminURL() + "/api/v1/replicas")
		if err := json.Unmarshal([]byte(body), &list); status != http.StatusOK || err != nil || len(list.Replicas) != len(c.Replicas) || list.Error != "" {
			t.Fatalf("replicas: %d %v %s", status, err, body)
		}
		for _, one := range list.Replicas {
			if one.Lease <= 0 || one.Lease > 10 {
				t.Errorf("a lease ends in %v s: %s", one.Lease, body)
			}
		}
		var sessions struct {
			Sessions []struct{ Session, Server string }
		}
		stdout, stderr, code := box.Run(t, "sessions", "--json", "--admin", r.AdminURL())
		if err := json.Unmarshal([]byte(stdout), &sessions); code != 0 || err != nil || len(sessions.Sessions) != 1 || sessions.Sessions[0].Server != cluster.OnWeb {
			t.Fatalf("sessions at replica %d: %d %v %s%s", i, code, err, stdout, stderr)
		}
		if got := sessions.Sessions[0].Session; hash != "" && got != hash {
			t.Errorf("the session is %s at one replica and %s at another", hash, got)
		}
		hash = sessions.Sessions[0].Session
	}
	if stdout, stderr, code := box.Run(t, "sessions", "end", hash, "--admin", c.Replicas[1].AdminURL()); code != 0 || !strings.Contains(stdout, hash) {
		t.Fatalf("end: %d %s%s", code, stdout, stderr)
	}
	for _, r := range c.Replicas {
		cluster.Await(t, eventTime, "the session is gone at "+r.URL, func() string {
			if a := s.Echo(r.URL); a.Status != http.StatusNotFound {
				return a.String()
			}
			return ""
		})
	}
}
