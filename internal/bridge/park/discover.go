package park

import (
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// discovered is the result of server/discover, made of an InitializeResult. All
// revisions are named, for clients of Signalbox may use any of them. Tasks and
// experimental things do not cross eras.
func discovered(init []byte, o *offers) []byte {
	text := []byte(`{"resultType":"complete","supportedVersions":["` + string(mcp.R20260728) + `"`)
	for _, r := range mcp.Handshakes() {
		text = append(text, `,"`+string(r)+`"`...)
	}
	text = append(text, `],"capabilities":`...)
	if at, ok := wire.Lookup(init, "capabilities"); ok && init[at.Start] == '{' {
		text = append(text, without(init, at, func(name []byte) bool {
			return string(name) == "tasks" || string(name) == "experimental"
		})...)
	} else {
		text = append(text, "{}"...)
	}
	if at, ok := wire.Lookup(init, "instructions"); ok && init[at.Start] == '"' {
		text = append(append(text, `,"instructions":`...), at.Of(init)...)
	}
	text = append(text, `,"ttlMs":0,"cacheScope":"private"`...)
	if o.info != nil {
		text = append(append(append(text, `,"_meta":{"`+mcp.MetaServerInfo+`":`...), o.info...), '}')
	}
	return append(text, '}')
}
