package modern

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// stateKey is no secret, so that every process of a fixture takes what another gave out.
var stateKey = []byte("a key of fixtures")

// Seal makes a requestState of a value: its JSON with a MAC.
func Seal(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // a fixture's own type
	}
	return base64.RawURLEncoding.EncodeToString(b) + "." + stateMAC(b)
}

func stateMAC(b []byte) string {
	m := hmac.New(sha256.New, stateKey)
	m.Write(b)
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// Open reads the state of a request into a value. It reports whether there is one, and
// fails where Seal did not make it.
func (c *Call) Open(into any) (bool, error) {
	if c.Params.RequestState == nil {
		return false, nil
	}
	encoded, sum, _ := strings.Cut(*c.Params.RequestState, ".")
	b, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || !hmac.Equal([]byte(stateMAC(b)), []byte(sum)) {
		return false, InvalidParams("invalid requestState")
	}
	if err := json.Unmarshal(b, into); err != nil {
		return false, InvalidParams("invalid requestState: %v", err)
	}
	return true, nil
}
