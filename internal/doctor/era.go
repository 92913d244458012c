package doctor

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// The names of the two eras.
const (
	handshake  = "handshake"
	perRequest = "per-request"
)

// asker sends one request to a server and returns the response to it. An error
// says that none came.
type asker interface {
	ask(ctx context.Context, method, params string) (wire.Message, error)
}

// discovered is what server/discover told.
type discovered struct {
	perRequest bool           // it speaks a revision of the per-request era that is known here
	versions   []mcp.Revision // that it named, whatever they are
	result     discoverResult
}

// discoverResult is a DiscoverResult, and the data of -32022 (2026-07-28,
// server/discover).
type discoverResult struct {
	SupportedVersions []string                   `json:"supportedVersions"`
	Supported         []string                   `json:"supported"` // of -32022
	Capabilities      map[string]json.RawMessage `json:"capabilities"`
	ServerInfo        serverInfo                 `json:"serverInfo"`
	Meta              struct {
		ServerInfo serverInfo `json:"io.modelcontextprotocol/serverInfo"`
	} `json:"_meta"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// discover finds out whether a server speaks the per-request era. A process of a
// server serves one era for its whole life, so w must lead to one that is not
// used for a handshake afterwards.
//
// The list of versions decides, and no error code does: -32022 may list only
// revisions of the handshake era, and so may a DiscoverResult. Any other error,
// an exit and silence mean the handshake era. Of an HTTP server, an error of
// the network, of the credentials and of the server itself means nothing.
func discover(ctx context.Context, w asker, version string) (discovered, error) {
	d, code, err := discoverOnce(ctx, w, version)
	if err != nil || d.perRequest || code != mcp.CodeUnsupportedVersion || !slices.Contains(d.versions, mcp.R20260728) {
		return d, err
	}
	d, _, err = discoverOnce(ctx, w, version) // it lists what it was asked in: once more
	return d, err
}

func discoverOnce(ctx context.Context, w asker, version string) (d discovered, code int, err error) {
	msg, err := w.ask(ctx, "server/discover", "{"+requestMeta(version)+"}")
	if err != nil {
		return d, 0, err
	}
	if msg.Error.Present() {
		var e struct {
			Code int            `json:"code"`
			Data discoverResult `json:"data"`
		}
		_ = json.Unmarshal(msg.Bytes(msg.Error), &e) // what does not fit names no versions
		d.versions = revisions(e.Data.Supported)
		return d, e.Code, nil
	}
	_ = json.Unmarshal(msg.Bytes(msg.Result), &d.result) // likewise
	d.versions = revisions(d.result.SupportedVersions)
	d.perRequest = slices.Contains(d.versions, mcp.R20260728)
	if d.result.Meta.ServerInfo.Name != "" {
		d.result.ServerInfo = d.result.Meta.ServerInfo
	}
	return d, 0, nil
}

// revisions are those of a list that are known here, newest first.
func revisions(list []string) []mcp.Revision {
	var out []mcp.Revision
	for _, text := range list {
		if r := mcp.Revision(text); r.Known() && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

// requestMeta is the _meta member that every request of the per-request era has.
func requestMeta(version string) string {
	return `"_meta":{"` + mcp.MetaVersion + `":"` + string(mcp.R20260728) + `","` + mcp.MetaClientCapabilities + `":{},"` +
		mcp.MetaClientInfo + `":` + clientInfo(version) + `}`
}

func clientInfo(version string) string {
	return `{"name":"signalbox-doctor","version":` + string(wire.AppendQuote(nil, version)) + `}`
}
