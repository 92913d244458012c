package auth

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// WellKnown is the path of the metadata of a protected resource (RFC 9728
// section 3); the resource's own path may follow it.
const WellKnown = "/.well-known/oauth-protected-resource"

// MetadataURL is where the metadata of a resource is found: WellKnown inserted
// between host and path (RFC 9728 section 3.1). It is "" for what is no absolute
// http or https URL.
func MetadataURL(resource string) string {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	s := u.Scheme + "://" + u.Host + WellKnown + strings.TrimSuffix(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		s += "?" + u.RawQuery
	}
	return s
}

// metadata is RFC 9728 section 2. A member without elements must be left out.
type metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers,omitempty"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
}

// Metadata is the document for a resource, as JSON (RFC 9728 section 2): the URL
// under which clients know it, the issuers, and the scopes asked of everyone and
// those given. It needs no credential. It is nil where authorization is off: the
// answer is then 404. With static keys only there is no authorization server
// to name, and the member is left out, as the RFC wants.
func (a *Authenticator) Metadata(resource string, scopes ...string) []byte {
	if !a.Enabled() {
		return nil
	}
	doc, err := json.Marshal(metadata{Resource: resource, AuthorizationServers: a.issuerURLs,
		ScopesSupported: a.required(scopes), BearerMethods: []string{"header"}})
	if err != nil {
		return nil // strings always encode
	}
	return doc
}

// required joins the scopes asked of everyone with those of one resource.
func (a *Authenticator) required(scopes []string) []string {
	if len(scopes) == 0 {
		return a.scopes
	}
	all := slices.Clone(a.scopes)
	for _, s := range scopes {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
