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
	var body struct{ Servers []serverState }
	err := readAdmin(url, &body)
	return body.Servers, err
}

func readAdmin(url string, into any) error {
	resp, err := metricsClient.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %s", url, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// AdminURL is the URL of the admin listener, without a path.
func (b *Box) AdminURL() string { return b.adminURL }

// Admin reads a path of the admin listener, as JSON.
func (b *Box) Admin(t testing.TB, path string, into any) {
	t.Helper()
	if err := readAdmin(b.adminURL+path, into); err != nil {
		t.Fatal(err)
	}
}
