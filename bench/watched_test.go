package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// adminOf is a target whose admin listener serves pages, and tells of each request.
func adminOf(t *testing.T, pages map[string]string) (*running, <-chan string) {
	asked := make(chan string, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.Error(w, "no such page", http.StatusNotFound)
		}
		_, _ = io.WriteString(w, page)
		asked <- r.URL.Path
	}))
	t.Cleanup(server.Close)
	return &running{admin: server.Listener.Addr().String()}, asked
}

const metricsPage = `# HELP signalbox_sessions Client sessions of this replica.
# TYPE signalbox_sessions gauge
signalbox_sessions{server="echo",transport="streamable"} 10000
signalbox_sessions{server="echo",transport="sse"} 2

signalbox_calls_in_flight 0
`

func TestScrapes(t *testing.T) {
	on, asked := adminOf(t, map[string]string{"/metrics": metricsPage})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- scrapes(ctx, on) }()
	if path := <-asked; path != "/metrics" {
		t.Errorf("asked for %s", path)
	}
	<-asked // again
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestScrapesFindsMissing(t *testing.T) {
	for name, pages := range map[string]map[string]string{
		"no page":   nil,
		"no series": {"/metrics": "# HELP a b\n"},
	} {
		on, _ := adminOf(t, pages)
		if err := scrapes(t.Context(), on); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestGet(t *testing.T) {
	on, _ := adminOf(t, map[string]string{"/a": strings.Repeat("a", 100_000)})
	if body, took, err := on.get(t.Context(), "/a"); len(body) != 100_000 || took <= 0 || err != nil {
		t.Errorf("%d bytes, %v, %v", len(body), took, err)
	}
	if _, _, err := on.get(t.Context(), "/b"); err == nil || !strings.Contains(err.Error(), "/b: HTTP 404: no such page") {
		t.Errorf("error %v", err)
	}
}

func TestSeriesIn(t *testing.T) {
	if n := seriesIn([]byte(metricsPage)); n != 3 {
		t.Errorf("%d series, want 3", n)
	}
}
