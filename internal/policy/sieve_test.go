package policy

import (
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
)

// rules allow what begins with "ok", for tools and prompts, and what lies
// below ok: of resources.
func rules() *Rules {
	return &Rules{
		Tools: NewFilter(only("ok*"), only("okdenied")), Prompts: NewFilter(only("ok*"), nil),
		Resources: NewFilter(only("ok:*"), nil), Shared: true,
	}
}

func response(result string) string { return `{"jsonrpc":"2.0","id":7,"result":` + result + `}` }

func TestListsKeepEveryOtherByte(t *testing.T) {
	for _, c := range []struct {
		method   mcp.Method
		in, want string
	}{
		{mcp.ToolsList, `{"tools":[]}`, `{"tools":[]}`},
		{mcp.ToolsList, `{"tools":[ ]}`, `{"tools":[ ]}`},
		{mcp.ToolsList, `{"tools":[{"name":"ok"}]}`, `{"tools":[{"name":"ok"}]}`},
		{mcp.ToolsList, `{"tools":[{"name":"no"}]}`, `{"tools":[]}`},
		{mcp.ToolsList, `{"tools":[ {"name":"no"} ]}`, `{"tools":[  ]}`},
		{mcp.ToolsList, `{"tools":[{"name":"no"},{"name":"ok"}]}`, `{"tools":[{"name":"ok"}]}`},
		{mcp.ToolsList, `{"tools":[{"name":"ok"},{"name":"no"}]}`, `{"tools":[{"name":"ok"}]}`},
		{mcp.ToolsList, `{"tools":[ {"name":"no"} , {"name":"ok1"} , {"name":"no"} , {"name":"no"} , {"name":"ok2"} , {"name":"no"} ]}`,
			`{"tools":[ {"name":"ok1"} , {"name":"ok2"} ]}`},
		{mcp.ToolsList, `{"tools":[{"name":"no"},{"name":"no"},{"name":"no"}],"nextCursor":"c\u0031"}`, `{"tools":[],"nextCursor":"c\u0031"}`},
		// Numbers, escapes, unknown members, white space and order stay.
		{mcp.ToolsList, "{\n \"_meta\" : {\"x/y\":1.0e+2},\t\"tools\":[\r\n{\"zNew\":{\"k\":[1,-0,9007199254740993]} , \"name\" : \"\\u006Fk\\u0061\",\"description\":\"\\ud83d\\ude00 \\ud800 日本 ]}\\\"\\\\\"},{\"name\":\"no\"}],\"nextCursor\":null}",
			"{\n \"_meta\" : {\"x/y\":1.0e+2},\t\"tools\":[\r\n{\"zNew\":{\"k\":[1,-0,9007199254740993]} , \"name\" : \"\\u006Fk\\u0061\",\"description\":\"\\ud83d\\ude00 \\ud800 日本 ]}\\\"\\\\\"}],\"nextCursor\":null}"},
		// Only the members of the element itself count.
		{mcp.ToolsList, `{"tools":[{"x":{"name":"ok"},"y":[{"name":"ok"}],"name":"no"},{"x":{"name":"no","tools":[]},"name":"ok"}]}`,
			`{"tools":[{"x":{"name":"no","tools":[]},"name":"ok"}]}`},
		{mcp.ToolsList, `{"structuredContent":{"tools":[{"name":"no"}]},"tools":[]}`, `{"structuredContent":{"tools":[{"name":"no"}]},"tools":[]}`},
		// Deny wins, the case counts, and names in escapes are decoded.
		{mcp.ToolsList, `{"tools":[{"name":"okdenied"},{"name":"OK"},{"name":"okd\u0065nied"},{"na\u006de":"n\u006f"},{"na\u006de":"ok"}]}`,
			`{"tools":[{"na\u006de":"ok"}]}`},
		// What readers decode differently is allowed to nobody.
		{mcp.ToolsList, `{"tools":[{"name":"ok\ud800"},{"name":"ok\u0000"},{"name":"ok\ufffd"},{"name":"ok\ud83d\ude00"}]}`,
			`{"tools":[{"name":"ok\ud83d\ude00"}]}`},
		{mcp.ToolsList, `{"\u0074ools":[{"name":"no"}]}`, `{"\u0074ools":[]}`},
		{mcp.PromptsList, `{"prompts":[{"name":"no"},{"name":"ok"}],"tools":[{"name":"no"}]}`, `{"prompts":[{"name":"ok"}],"tools":[{"name":"no"}]}`},
		{mcp.ResourcesList, `{"resources":[{"uri":"no:a","name":"ok:"},{"uri":"ok:a","name":"x"},{"uri":"ok:a/../b"}]}`,
			`{"resources":[{"uri":"ok:a","name":"x"}]}`},
		{mcp.ResourcesTemplatesList, `{"resourceTemplates":[{"uriTemplate":"ok:{a}"},{"uriTemplate":"{a}"},{"uriTemplate":"ok:{"}]}`,
			`{"resourceTemplates":[{"uriTemplate":"ok:{a}"}]}`},
		{mcp.ToolsList, `{"resultType":"complete","ttlMs":5,"cacheScope":"public","tools":[{"name":"no"}]}`,
			`{"resultType":"complete","ttlMs":5,"cacheScope":"public","tools":[]}`},
	} {
		out, err := rules().sieveFor(c.method).apply([]byte(response(c.in)))
		if err != nil || string(out) != response(c.want) {
			t.Errorf("%s: %v\n in  %s\n got %s\nwant %s", c.method, err, c.in, out, response(c.want))
		}
		if c.in != c.want && cap(out) != len(out) {
			t.Errorf("%s: holds %d bytes for %d", c.in, cap(out), len(out))
		}
	}
}

func TestAnswersOfRulesForOneUserArePrivate(t *testing.T) {
	for _, c := range []struct {
		method   mcp.Method
		in, want string
	}{
		{mcp.ToolsList, `{"cacheScope":"public","tools":[{"name":"no"}]}`, `{"cacheScope":"private","tools":[]}`},
		{mcp.ToolsList, `{"tools":[{"name":"no"}],"cacheScope" : "public" }`, `{"tools":[],"cacheScope" : "private" }`},
		{mcp.ToolsList, `{"tools":[],"cacheScope":"pu\u0062lic"}`, `{"tools":[],"cacheScope":"private"}`},
		{mcp.ToolsList, `{"tools":[],"cacheScope":null}`, `{"tools":[],"cacheScope":"private"}`},
		{mcp.ToolsList, `{"tools":[],"cacheScope":"new"}`, `{"tools":[],"cacheScope":"private"}`},
		{mcp.ToolsList, `{"tools":[],"cacheScope":"privat\u0065"}`, `{"tools":[],"cacheScope":"privat\u0065"}`},
		{mcp.ToolsList, `{ "tools":[{"name":"no"}],"ttlMs":5}`, `{"cacheScope":"private", "tools":[],"ttlMs":5}`},
		{mcp.ToolsList, `{"tools":[{"name":"ok","cacheScope":"public"}]}`, `{"tools":[{"name":"ok","cacheScope":"public"}]}`},
		{mcp.ResourcesRead, `{"contents":[{"uri":"no:a"}],"cacheScope":"public"}`, `{"contents":[{"uri":"no:a"}],"cacheScope":"private"}`},
		{mcp.ResourcesRead, `{"contents":[],"":1,"":2}`, `{"contents":[],"":1,"":2}`},
		{mcp.ResourcesRead, `{}`, `{}`},
	} {
		r := rules()
		r.Shared = false
		out, err := r.sieveFor(c.method).apply([]byte(response(c.in)))
		if err != nil || string(out) != response(c.want) {
			t.Errorf("%s: %v\n got %s\nwant %s", c.in, err, out, response(c.want))
		}
	}
	if rules().sieveFor(mcp.ResourcesRead) != nil {
		t.Error("rules of all sessions look at resources/read")
	}
}

func TestUnreadableListsAreErrors(t *testing.T) {
	r := rules()
	r.Shared = false
	deep := strings.Repeat("[", 1001) + strings.Repeat("]", 1001)
	for _, result := range []string{
		`null`, `[]`, `[{"name":"ok"}]`, `"tools"`, `1`, `{}`, `{"Tools":[{"name":"ok"}]}`, `{"prompts":[]}`,
		`{"tools":null}`, `{"tools":{}}`, `{"tools":{"0":{"name":"ok"}}}`, `{"tools":"[]"}`,
		`{"tools":[],"tools":[]}`, `{"tools":[],"\u0074ools":[]}`, `{"tools":[],"Tools":[]}`, `{"TOOLS":[],"tools":[]}`, `{"tools":[],"toolſ":[]}`,
		`{"tools":["ok"]}`, `{"tools":[null]}`, `{"tools":[[{"name":"ok"}]]}`, `{"tools":[{}]}`, `{"tools":[{"Name":"ok"}]}`,
		`{"tools":[{"name":null}]}`, `{"tools":[{"name":["ok"]}]}`, `{"tools":[{"name":"ok"},{"title":"ok"}]}`,
		`{"tools":[{"name":"ok","name":"no"}]}`, `{"tools":[{"name":"ok","name":"ok"}]}`, `{"tools":[{"name":"ok","n\u0061me":"no"}]}`, `{"tools":[{"name":"ok","nAme":"no"}]}`,
		`{"tools":[],"cacheScope":"private","cacheScope":"public"}`, `{"tools":[],"cacheSCOPE":"public"}`, `{"tools":[],"ttlMs":1,"TTLMS":1}`,
		`{"tools":[{"name":"ok","x":` + deep + `}]}`, `{"resultType":"input_required","inputRequests":{}}`,
	} {
		if out, err := r.sieveFor(mcp.ToolsList).apply([]byte(response(result))); err == nil {
			t.Errorf("%.100s: passed as %.100s", result, out)
		}
	}
	for _, raw := range []string{``, `{`, `[]`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[]},"Result":{}}`, response(`{"tools":[]}`) + `x`, response(`{"tools":["` + "\xff" + `"]}`)} {
		if out, err := r.sieveFor(mcp.ToolsList).apply([]byte(raw)); err == nil {
			t.Errorf("%s: passed as %s", raw, out)
		}
	}
}

func TestErrorsOfTheServerStay(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x","data":{"tools":[{"name":"no"}]}}}`
	out, err := rules().sieveFor(mcp.ToolsList).apply([]byte(in))
	if err != nil || string(out) != in {
		t.Errorf("%s, %v", out, err)
	}
}

func TestOnlyListsOfFilteredKindsHaveASieve(t *testing.T) {
	for _, r := range []*Rules{{Tools: NewFilter(nil, only("x"))}, {Prompts: NewFilter(nil, only("x"))}, {Resources: NewFilter(nil, only("x"))}} {
		got := ""
		for _, m := range []mcp.Method{mcp.ToolsList, mcp.ToolsCall, mcp.PromptsList, mcp.ResourcesList, mcp.ResourcesTemplatesList, mcp.ResourcesRead, mcp.Other, mcp.ServerDiscover} {
			if r.sieveFor(m) != nil {
				got += m.String() + " "
			}
		}
		want := map[bool]string{r.Tools != nil: "tools/list ", r.Prompts != nil: "prompts/list ",
			r.Resources != nil: "resources/list resources/templates/list resources/read "}[true]
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
