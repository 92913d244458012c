package process

import (
	"strings"
	"testing"
)

func TestDropsAreTold(t *testing.T) {
	var told []string
	w := newWorld(t, false, func(c *Config) {
		c.Metrics.Dropped = func(server string, reason DropReason, method string) {
			told = append(told, server+" "+string(reason)+" "+method)
		}
	})
	defer w.Server.Close()
	(&link{hub: newHub(w.Server)}).skip([]byte("Hello"))
	w.Server.drops.add(DropNoReader, "notifications/message")
	w.Server.drops.add(DropUnattributable, strings.Repeat("m", 200))
	if want := "fake noise , fake no_reader notifications/message, fake unattributable " + strings.Repeat("m", 128) + "..."; strings.Join(told, ", ") != want {
		t.Errorf("told of %v", told)
	}
	if got := w.dropped(); got[DropNoReader] != 1 || got[DropUnattributable] != 1 {
		t.Errorf("counted %v", got)
	}
}
