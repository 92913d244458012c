package box

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

// Address is one address of an HTTP server as the admin listener tells it.
type Address struct {
	Address  string
	Down     bool
	Sessions int
}

// Addresses of the HTTP server with this name. There are none before its first session.
func (b *Box) Addresses(t testing.TB, name string) []Address {
	t.Helper()
	servers, err := readServers(b.adminURL + "/api/v1/servers")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		if s.Name == name {
			return s.Addresses
		}
	}
	t.Fatalf("no server is called %q: %v", name, servers)
	return nil
}

type serverState struct {
	Name      string
	Addresses []Address
}

func readServers(url string) ([]serverState, error) {
	resp, err := metricsClient.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %s", url, resp.Status)
	}
	var body struct{ Servers []serverState }
	err = json.NewDecoder(resp.Body).Decode(&body)
	return body.Servers, err
}
