package auth

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

const (
	maxKeyFile = 1 << 20 // bytes
	hashPrefix = "sha256:"
	maxNesting = 100 // brackets, in a file of which none need more than two
)

var (
	keyName    = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,64}$`)
	scopeToken = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]+$`) // RFC 6749 section 3.3
)

// parseKeyFile reads a list of keys in YAML:
//
//   - name: ci
//     hash: sha256:0123…
//     scopes: [mcp:read]
//
// Anything else is an error with the line it stands in. An empty file is one
// too, for that is what a file looks like while it is being written; a list
// without keys is [].
func parseKeyFile(text []byte) (found map[digest]*Principal, err error) {
	defer func() {
		if recover() != nil { // the library has inputs that it panics on
			found, err = nil, fmt.Errorf("this cannot be read as YAML")
		}
	}()
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("the file is larger than 1 MiB")
	}
	if tooDeep(text) {
		return nil, fmt.Errorf("nested too deep")
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, yamlError(err)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, fmt.Errorf("the file must hold one YAML list of keys; [] for none")
	}
	list, ok := file.Docs[0].Body.(*ast.SequenceNode)
	if !ok {
		return nil, at(file.Docs[0].Body, "a list of keys is wanted: - name: NAME")
	}
	r := keyReader{byHash: make(map[digest]*Principal), lines: make(map[string]int)}
	for _, item := range list.Values {
		if err := r.entry(item); err != nil {
			return nil, err
		}
	}
	return r.byHash, nil
}

// keyReader collects entries and finds what stands twice.
type keyReader struct {
	byHash map[digest]*Principal
	lines  map[string]int // "name" or "hash" and its value, to where it stood first
}

// entry reads one key.
func (r *keyReader) entry(n ast.Node) error {
	var fields []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		fields = m.Values
	case *ast.MappingValueNode:
		fields = []*ast.MappingValueNode{m}
	default:
		return at(n, "a key is wanted: name, hash and scopes")
	}
	var name, hash string
	var scopes []string
	var err error
	for _, field := range fields {
		switch key := field.Key.GetToken().Value; key {
		case "name":
			name, err = text(field.Value, "name")
			if err == nil && !keyName.MatchString(name) {
				err = at(field.Value, "a name is 1 to 64 of the characters A-Z a-z 0-9 . _ @ -")
			}
		case "hash":
			hash, err = text(field.Value, "hash")
		case "scopes":
			scopes, err = scopeList(field.Value)
		default:
			err = at(field.Key, "unknown setting %.64q; a key has name, hash and scopes", key)
		}
		if err != nil {
			return err
		}
	}
	if name == "" || hash == "" {
		return at(n, "a key needs both a name and a hash; `signalbox key new NAME` prints an entry")
	}
	sum, ok := parseHash(hash)
	if !ok {
		return at(n, "the hash of key %q is not sha256: and 64 hex digits; `signalbox key new NAME` prints an entry", name)
	}
	for _, id := range []struct{ what, value string }{{"name", name}, {"hash", string(sum[:])}} {
		if first, twice := r.lines[id.what+id.value]; twice {
			return at(n, "the %s of key %q stands in line %d already", id.what, name, first)
		}
		r.lines[id.what+id.value] = line(n)
	}
	p := &Principal{Kind: KindKey, Subject: name, Scopes: scopes}
	p.key = p.Key()
	r.byHash[sum] = p
	return nil
}

func parseHash(s string) (sum digest, ok bool) {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	if !ok || len(digits) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(digits))
	return sum, err == nil
}

// text reads a string. A number or a boolean is one only in quotes, so that
// what is compared is what the file shows.
func text(n ast.Node, what string) (string, error) {
	s, ok := n.(*ast.StringNode)
	if !ok {
		return "", at(n, "%s must be text; quote it", what)
	}
	return s.Value, nil
}

func scopeList(n ast.Node) ([]string, error) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, at(n, "scopes must be a list: [a, b]")
	}
	var scopes []string
	for _, item := range list.Values {
		s, err := text(item, "a scope")
		if err != nil {
			return nil, err
		}
		if !scopeToken.MatchString(s) {
			return nil, at(item, "a scope is visible ASCII without spaces, quotes and backslashes")
		}
		scopes = append(scopes, s)
	}
	return scopes, nil
}
