package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

const (
	endpointSessions = 100 // half over each transport
	endpointCalls    = 4   // of each session in each phase, at least
)

// TestOneOfThreeAddressesIsKilled has one server at three addresses, and kills one of
// them while all sessions call. Who is at home elsewhere must not notice. No tool may
// run twice, whatever is done about the sessions that are lost.
func TestOneOfThreeAddressesIsKilled(t *testing.T) {
	for _, onLost := range []string{"end", "reinitialize"} {
		t.Run(onLost, func(t *testing.T) { testKilledAddress(t, onLost) })
		t.Run(onLost+", streams that can be resumed", func(t *testing.T) {
			t.Parallel() // it takes some seconds until Signalbox gives a stream up
			testKilledAddress(t, onLost, "-resume")
		})
	}
}

func testKilledAddress(t *testing.T, onLost string, flags ...string) {
	servers := startThree(t, flags...)
	b := box.StartConfig(t, servers.config(onLost))
	clients := make([]*tagClient, endpointSessions)
	for n := range clients {
		clients[n] = &tagClient{t: t, n: n, base: b.URL, onLost: onLost}
	}
	forAll(clients, func(c *tagClient) { c.begin(t.Context()) })
	if t.Failed() {
		return
	}
	checkSpread(t, b, clients)

	const dead = "server-1"
	underLoad(t, clients, func() {
		awaitCalls(t, clients, "")
		servers.byName[dead].kill()
		awaitCalls(t, clients, dead)
	})
	lost := checkLosses(t, clients, dead, onLost)
	servers.checkRecords(t, clients, endpointSessions+lost)
	checkMoved(t, b, servers, dead)
	servers.byName[dead].start()
	awaitReturn(t, b, dead)
	forAll(clients, func(c *tagClient) { c.end(t.Context()) })
	b.EventuallyMetric(t, box.MetricSessions, 0)
	b.EventuallyMetric(t, box.MetricStreams, 0)
}

// underLoad does something while all clients call.
func underLoad(t *testing.T, clients []*tagClient, do func()) {
	var running sync.WaitGroup
	stop := make(chan struct{})
	defer running.Wait()
	defer close(stop)
	for _, c := range clients {
		running.Go(func() { c.run(t.Context(), stop) })
	}
	do()
}

// awaitCalls waits until each client has had answers of a server other than the dead
// one, at least endpointCalls from now.
func awaitCalls(t *testing.T, clients []*tagClient, dead string) {
	t.Helper()
	before := make([]int, len(clients))
	for i, c := range clients {
		if server, answered, _ := c.state(); server != dead {
			before[i] = answered
		}
	}
	box.Eventually(t, "all clients are answered", func() string {
		if t.Failed() {
			t.FailNow()
		}
		for i, c := range clients {
			server, answered, losses := c.state()
			if server == dead || answered < before[i]+endpointCalls {
				return fmt.Sprintf("client %d has %d losses, and since then %d answers of %s", c.n, losses, answered, server)
			}
		}
		return ""
	})
}

// threeServers are copies of one server, each with a record of what it did.
type threeServers struct {
	byName  map[string]*program
	records []string // paths
}

func startThree(t *testing.T, flags ...string) *threeServers {
	t.Helper()
	s := &threeServers{byName: make(map[string]*program)}
	dir := t.TempDir()
	for n := range 3 {
		name := fmt.Sprintf("server-%d", n)
		record := filepath.Join(dir, name)
		s.byName[name] = sdkServer(t, append(flags, "-name", name, "-record", record)...)
		s.records = append(s.records, record)
	}
	return s
}

func (s *threeServers) config(onLost string) string {
	var endpoints []string
	for _, p := range s.byName {
		endpoints = append(endpoints, p.url())
	}
	return fmt.Sprintf("mcpServers:\n  tagged:\n    url: http://localhost/mcp\n    endpoints: [%s]\n    on-lost: %s\n",
		strings.Join(endpoints, ", "), onLost)
}

// checkRecords: what was answered ran once, what was not at most once, and nothing else
// ran; and sessions began as often as they had to.
func (s *threeServers) checkRecords(t *testing.T, clients []*tagClient, initialized int) {
	t.Helper()
	ran := make(map[string]int)
	for _, path := range s.records {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			ran[strings.TrimSpace(line)]++
		}
	}
	if ran["initialize"] != initialized {
		t.Errorf("the servers saw %d times initialize, want %d", ran["initialize"], initialized)
	}
	delete(ran, "initialize")
	delete(ran, "DELETE")
	sent := make(map[string]bool)
	for _, c := range clients {
		for tag, answered := range c.sent {
			line := "tag " + tag
			sent[line] = true
			if n := ran[line]; n > 1 || answered && n != 1 {
				t.Errorf("%s ran %d times, answered: %v", line, n, answered)
			}
		}
	}
	for line := range ran {
		if !sent[line] {
			t.Errorf("the servers saw %q, which nobody sent", line)
		}
	}
}

// checkSpread: sessions began evenly, as the clients and Signalbox see it.
func checkSpread(t *testing.T, b *box.Box, clients []*tagClient) {
	t.Helper()
	at := make(map[string]int)
	for _, c := range clients {
		at[c.server]++
	}
	for _, a := range b.Addresses(t, "tagged") {
		at[a.Address] = a.Sessions
	}
	if len(at) != 6 {
		t.Errorf("want three servers at three addresses: %v", at)
	}
	for where, n := range at {
		if n < endpointSessions/3-1 || n > endpointSessions/3+1 {
			t.Errorf("%s has %d sessions: %v", where, n, at)
		}
	}
}

// checkLosses counts the sessions that the dead server had and checks what the others
// saw of it, which is nothing.
func checkLosses(t *testing.T, clients []*tagClient, dead, onLost string) (lost int) {
	t.Helper()
	kinds := make(map[string]int)
	for _, c := range clients {
		if c.first == dead {
			lost++
			if len(c.errors) > 1 || onLost == "end" && len(c.errors) != 1 {
				t.Errorf("client %d saw %q", c.n, c.errors)
			}
		} else if len(c.errors) != 0 || c.server != c.first {
			t.Errorf("client %d of %s, now at %s, saw %q", c.n, c.first, c.server, c.errors)
		}
		for _, e := range c.errors {
			kinds[e]++
		}
	}
	t.Logf("%d sessions were lost; their clients saw %v", lost, kinds)
	return lost
}

// checkMoved: Signalbox counts no session at the dead address, and knows that it is.
func checkMoved(t *testing.T, b *box.Box, servers *threeServers, dead string) {
	t.Helper()
	box.Eventually(t, "all sessions are at the two that live", func() string {
		addresses := b.Addresses(t, "tagged")
		sum := 0
		for _, a := range addresses {
			isDead := a.Address == servers.byName[dead].url()
			if isDead != a.Down || isDead && a.Sessions != 0 {
				return fmt.Sprint(addresses)
			}
			sum += a.Sessions
		}
		if sum != endpointSessions {
			return fmt.Sprint(addresses)
		}
		return ""
	})
}

// awaitReturn opens sessions until one begins at the server that was dead.
func awaitReturn(t *testing.T, b *box.Box, name string) {
	t.Helper()
	c := rawclient.New(b.URL)
	defer c.Close()
	box.Eventually(t, "a new session is at "+name, func() string {
		s, err := c.Streamable(t.Context(), rawclient.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		answer, err := callTag(t.Context(), s, "1", "after", 0)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Server != name {
			return "at " + answer.Server
		}
		return ""
	})
}

func forAll(clients []*tagClient, do func(*tagClient)) {
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() { do(c) })
	}
	all.Wait()
}
