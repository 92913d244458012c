package upstream

import (
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// UnsupportedVersion is the error for a version that is not spoken here. The list in
// it tells the era, and what to ask for (2026-07-28, basic/versioning).
func UnsupportedVersion(requested string) *Error {
	if len(requested) > 100 {
		requested = requested[:100] + "..."
	}
	e := Errorf(mcp.CodeUnsupportedVersion, "unsupported_version", "protocol version %q is not supported here", requested)
	e.Data = `,"supported":` + mcp.SupportedVersions + `,"requested":` + string(wire.AppendQuote(nil, requested))
	return e
}

// CheckVersion looks at the version that a request of the per-request era names in
// params._meta.
func CheckVersion(req *Request) error {
	version, isText := wire.Unquote(req.Msg.Bytes(req.Msg.P.MetaVersion))
	switch {
	case !isText:
		return Errorf(mcp.CodeInvalidParams, "meta", "params._meta must hold %s as a string", mcp.MetaVersion)
	case mcp.Revision(version) != mcp.R20260728:
		return UnsupportedVersion(string(version))
	}
	return nil
}

// CheckMeta looks at all that a request of the per-request era must say of itself
// (2026-07-28, basic/index, "_meta"), and at whether there is such a request.
func CheckMeta(req *Request) error {
	if err := CheckVersion(req); err != nil {
		return err
	}
	m := &req.Msg
	if caps := m.Bytes(m.P.MetaClientCaps); len(caps) == 0 || caps[0] != '{' {
		return Errorf(mcp.CodeInvalidParams, "meta", "params._meta must hold %s as an object", mcp.MetaClientCapabilities)
	}
	if m.P.MetaLogLevel.Present() {
		if level, _ := wire.Unquote(m.Bytes(m.P.MetaLogLevel)); !mcp.IsLogLevel(string(level)) {
			return Errorf(mcp.CodeInvalidParams, "level", "unknown log level")
		}
	}
	if !req.Method.PerRequest() {
		return Errorf(mcp.CodeMethodNotFound, "unknown_method", "Method not found: %s is not part of revision %s", req.Method, mcp.R20260728)
	}
	return nil
}
