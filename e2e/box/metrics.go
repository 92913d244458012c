package box

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Metrics by name; samples of one name with several labels are summed.
const (
	MetricSessions      = "signalbox_sessions"
	MetricStreams       = "signalbox_streams"
	MetricCallsInFlight = "signalbox_calls_in_flight"
	MetricProcesses     = "signalbox_processes"
	MetricGoroutines    = "go_goroutines"

	// Of the bridge between the eras.
	MetricParked         = "signalbox_parked_calls"
	MetricHiddenSessions = "signalbox_hidden_sessions"
)

// Metrics reads /metrics of the admin listener.
func (b *Box) Metrics(t testing.TB) map[string]float64 {
	t.Helper()
	sums, err := readMetrics(b.adminURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// metricsClient keeps no connection, so that asking changes no count of descriptors.
var metricsClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func readMetrics(url string) (map[string]float64, error) {
	resp, err := metricsClient.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %s", url, resp.Status)
	}
	sums := make(map[string]float64)
	for lines := bufio.NewScanner(resp.Body); ; {
		if !lines.Scan() {
			return sums, lines.Err()
		}
		line := lines.Text()
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		name, _, _ := strings.Cut(line[:end], "{")
		sums[name] += value
	}
}

// EventuallyMetric waits until a gauge has a value.
func (b *Box) EventuallyMetric(t testing.TB, name string, want float64) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%s is %v", name, want), func() string {
		got, ok := b.Metrics(t)[name]
		switch {
		case !ok:
			return "absent"
		case got != want:
			return fmt.Sprint(got)
		}
		return ""
	})
}
