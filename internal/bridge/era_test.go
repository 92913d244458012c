package bridge

import (
	"strings"
	"testing"
)

// What servers were seen to answer to server/discover, and what they are.
func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name, reply string
		perRequest  bool
	}{
		{"both eras", `{"jsonrpc":"2.0","id":"x","result":{"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]}}`, true},
		{"per-request era only", `{"jsonrpc":"2.0","id":"x","result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}`, true},
		{"a list of old versions, as an error", `{"jsonrpc":"2.0","id":"x","error":{"code":-32022,"message":"m","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}`, false},
		{"a list of old versions, as a result", `{"jsonrpc":"2.0","id":"x","result":{"supportedVersions":["2025-11-25","2025-06-18"]}}`, false},
		{"a later version only", `{"jsonrpc":"2.0","id":"x","result":{"supportedVersions":["2027-07-28"]}}`, false},
		{"a list with ours, as an error", `{"jsonrpc":"2.0","id":"x","error":{"code":-32022,"message":"m","data":{"supported":["2027-01-01","2026-07-28"]}}}`, true},
		{"no list", `{"jsonrpc":"2.0","id":"x","result":{}}`, false},
		{"a list that is none", `{"jsonrpc":"2.0","id":"x","result":{"supportedVersions":"2026-07-28"}}`, false},
		{"code 0", `{"jsonrpc":"2.0","id":"x","error":{"code":0,"message":"method \"server/discover\" is invalid during session initialization"}}`, false},
		{"method not found", `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method not found"}}`, false},
		{"invalid params", `{"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"Invalid request parameters"}}`, false},
		{"server error without an id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`, false},
		{"exit, or silence", ``, false},
		{"no message", `<html>`, false},
		{"a request", `{"jsonrpc":"2.0","id":"x","method":"roots/list"}`, false},
	} {
		if got := Judge([]byte(tt.reply)); got.PerRequest != tt.perRequest || got.Reason == "" {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if got := Judge([]byte(tt.reply)); got.Handshake != strings.Contains(tt.reply, `"2025-11-25"`) {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestJudgeHTTP(t *testing.T) {
	modern := `{"jsonrpc":"2.0","id":"x","result":{"supportedVersions":["2026-07-28"]}}`
	old := `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}`
	for _, tt := range []struct {
		status         int
		reply          string
		perRequest, ok bool
	}{
		{200, modern, true, true},
		{200, `{"jsonrpc":"2.0","id":"x","result":{"supportedVersions":["2025-11-25"]}}`, false, true},
		{400, `{"jsonrpc":"2.0","id":"x","error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"]}}}`, true, true},
		{400, old, false, true},
		{404, "", false, true},
		{405, "", false, true},
		{406, "<html>", false, true},
		{401, "", false, false},
		{403, "", false, false},
		{429, "", false, false},
		{502, "", false, false},
	} {
		if f, ok := JudgeHTTP(tt.status, []byte(tt.reply)); f.PerRequest != tt.perRequest || ok != tt.ok {
			t.Errorf("%d %s: %+v %v", tt.status, tt.reply, f, ok)
		}
	}
}

func TestDiscoverIsARequestOfTheEra(t *testing.T) {
	req := request(t, string(Discover(`1.0"x`)))
	if req.Method.String() != "server/discover" || !strings.HasPrefix(string(req.Msg.Bytes(req.Msg.ID)), `"`) {
		t.Errorf("%s", req.Msg.Raw)
	}
	if string(req.Msg.Bytes(req.Msg.P.MetaVersion)) != `"2026-07-28"` || string(req.Msg.Bytes(req.Msg.P.MetaClientCaps)) != "{}" {
		t.Errorf("%s", req.Msg.Raw)
	}
}
