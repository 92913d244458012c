package echo

// AnswerPerRequest is Answer as a server of the per-request era gives it (MCP 2026-07-28): it
// knows server/discover and no handshake, and its results say that they are complete.
func (c Call) AnswerPerRequest(dst []byte) []byte {
	if c.ID == nil || c.Method == nil {
		return dst
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, c.ID...)
	switch string(c.Method) {
	case "tools/call":
		dst = append(dst, `,"result":{"resultType":"complete","content":[],"structuredContent":`...)
		dst = c.appendContent(dst)
		return append(dst, "}}"...)
	case "server/discover":
		return append(dst, `,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},`+
			`"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1.0.0"}}}}`...)
	case "tools/list":
		return append(dst, `,"result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}],`+
			`"ttlMs":0,"cacheScope":"private"}}`...)
	}
	return append(dst, notFound...)
}
