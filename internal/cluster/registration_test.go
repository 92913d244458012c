package cluster

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func testRegistration(id string) registration {
	return registration{id: id, address: "10.0.0.1:7946", fingerprint: fingerprint{1, 2, 3}}
}

func TestRegistrationComesBack(t *testing.T) {
	for _, address := range []string{"10.0.0.1:1", "[::1]:65535", "pod-0.headless.svc:7946", strings.Repeat("a", maxAddress-2) + ":1"} {
		r := testRegistration("some-id")
		r.address = address
		if got, err := decodeRegistration(testKey, "some-id", r.encode(testKey)); got != r || err != nil {
			t.Errorf("%v came back as %v, %v", r, got, err)
		}
	}
}

func TestRegistrationsThatAreRefused(t *testing.T) {
	good := testRegistration("id").encode(testKey)
	signed := func(b []byte) []byte { return append(b, mac(testKey, b)...) }
	body := func() []byte { return bytes.Clone(good[:len(good)-32]) }
	flip := func(i int) []byte { b := bytes.Clone(good); b[i] ^= 1; return b }
	for name, c := range map[string]struct {
		id    string
		value []byte
		want  error
	}{
		"empty":             {"id", nil, errMalformed},
		"cut off":           {"id", good[:len(good)-1], errMAC},
		"far too short":     {"id", good[:20], errMalformed},
		"far too long":      {"id", append([]byte{registrationV1}, make([]byte, 1<<20)...), errMalformed},
		"another version":   {"id", flip(0)[:1], errVersion},
		"another secret":    {"id", testRegistration("id").encode(derive(bytes.Repeat([]byte{8}, 32), "x")), errMAC},
		"another purpose":   {"id", testRegistration("id").encode(StateKey(testSecret)), errMAC},
		"other fingerprint": {"id", flip(len(good) - 40), errMAC},
		"other address":     {"id", flip(8), errMAC},
		"other MAC":         {"id", flip(len(good) - 1), errMAC},
		"under another id":  {"other", good, errOtherID},
		"more behind":       {"id", signed(append(body(), 0)), errMalformed},
		"bad lengths":       {"id", signed(append([]byte{registrationV1, 255}, make([]byte, 40)...)), errMalformed},
		"no address": {"id", func() []byte {
			r := testRegistration("id")
			r.address = ""
			return r.encode(testKey)
		}(), errMalformed},
	} {
		if r, err := decodeRegistration(testKey, c.id, c.value); !errors.Is(err, c.want) || r != (registration{}) {
			t.Errorf("%s: %v, %v, want %v", name, r, err, c.want)
		}
	}
}

func FuzzDecodeRegistration(f *testing.F) {
	good := testRegistration("id").encode(testKey)
	f.Add(good, true)
	f.Add(good[:len(good)-32], true)
	f.Add([]byte{registrationV1, 0, 0}, true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, b []byte, sign bool) {
		if sign { // else nothing gets past the MAC
			b = append(bytes.Clone(b), mac(testKey, b)...)
		}
		r, err := decodeRegistration(testKey, "id", b)
		if err != nil {
			return
		}
		// What is taken is what this replica would have written.
		if r.id != "id" || !bytes.Equal(r.encode(testKey), b) {
			t.Errorf("%x was taken as %v", b, r)
		}
	})
}

func TestAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:1": true, "host:80": true, "[fe80::1%eth0]:80": true,
		"": false, "host": false, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "host:0": false, "host:http": false, "host:65536": false,
	} {
		if err := checkAddress(address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestParseSecret(t *testing.T) {
	long := strings.Repeat("k", MinSecret)
	for file, want := range map[string]string{long: long, " \n" + long + "\r\n\t": long, long + " x": long + " x", long[1:] + "\n": "", "": ""} {
		got, err := ParseSecret([]byte(file))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", file, got, err)
		}
		if err != nil && len(file) > 1 && strings.Contains(err.Error(), long[1:]) {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
	if bytes.Equal(StateKey(testSecret), testKey) || len(StateKey(testSecret)) != 32 {
		t.Error("the state key must be one of its own, 32 bytes")
	}
}
