package main

import "testing"

func TestCheckMetrics(t *testing.T) {
	for page, want := range map[string]bool{
		metricsPage: true,
		"":          false,
		"signalbox_sessions{server=\"a\"} 10001\n":                                          false,
		"signalbox_sessions{server=\"a\"} many\n":                                           false,
		"signalbox_sessions_total{server=\"a\"} 10002\n":                                    false,
		"signalbox_sessions{server=\"a\"} 1\nsignalbox_sessions{server=\"b\"} 1.0001e+04\n": true,
	} {
		if err := checkMetrics([]byte(page), 10002); (err == nil) != want {
			t.Errorf("%s: %v", page, err)
		}
	}
}

func TestCheckSessions(t *testing.T) {
	page := []byte(`{"sessions":[{"session":"0a1b2c3d","server":"echo"},{"session":"1a1b2c3d","server":"echo"}]}`)
	if err := checkSessions(page, 2); err != nil {
		t.Error(err)
	}
	if checkSessions(page, 3) == nil || checkSessions([]byte(`{"sessions":[]}`), 1) == nil {
		t.Error("missing sessions are not noticed")
	}
}
