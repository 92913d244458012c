package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
)

// maker writes random JSON, with white space and escapes wherever they may be.
type maker struct{ *rand.Rand }

func (m maker) space() string {
	return []string{"", "", "", " ", "\n", "\t ", "\r\n"}[m.IntN(7)]
}

func (m maker) str(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < 0x10000 && m.IntN(4) == 0 {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (m maker) value(depth int) string {
	switch m.IntN(4 + min(depth, 1)*2) {
	case 0:
		return []string{"null", "true", "false", "1e400", "-0", "9007199254740993", "1.50"}[m.IntN(7)]
	case 1:
		return m.str([]string{"", "name", "]}", "日本", "😀", `a/b`}[m.IntN(6)])
	case 2:
		return `"\"\\\\\" } ] \ud800"`
	case 3:
		return `"\\"`
	case 4:
		var items []string
		for range m.IntN(4) {
			items = append(items, m.space()+m.value(depth-1)+m.space())
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	return m.object(m.members(depth - 1))
}

func (m maker) members(depth int) []string {
	var all []string
	for i := range m.IntN(4) {
		all = append(all, m.str(fmt.Sprintf("k%d", i))+m.space()+":"+m.space()+m.value(depth))
	}
	return all
}

func (m maker) object(members []string) string {
	m.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	for i := range members {
		members[i] = m.space() + members[i] + m.space()
	}
	return "{" + strings.Join(members, ",") + "}"
}

// list is an answer to tools/list, and its elements.
func (m maker) list() (reply string, elements []string) {
	names := []string{"ok", "ok2", "no", "okdenied", "OK", "ök", "ok😀", "", "ok\uFFFD"}
	array := "[" + m.space()
	for i := range m.IntN(8) {
		if i > 0 {
			array += "," + m.space()
		}
		e := m.object(append(m.members(3), m.str("name")+m.space()+":"+m.space()+m.str(names[m.IntN(len(names))])))
		elements = append(elements, e)
		array += e + m.space()
	}
	result := m.object(append(m.members(2), m.str("tools")+m.space()+":"+m.space()+array+"]"))
	return m.object([]string{`"jsonrpc":"2.0"`, `"id":1`, `"result":` + result}), elements
}

func decode(t *testing.T, text []byte) (reply map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&reply); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return reply
}

// What is left of a list is what encoding/json leaves of it, and every element
// that stays keeps its bytes.
func TestFilteredListsEqualTheFilteredDecoding(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(3, 4))}
	r := rules()
	cut := 0
	for range 5_000 {
		in, elements := m.list()
		out, err := r.sieveFor(mcp.ToolsList).apply([]byte(in))
		if err != nil {
			t.Fatalf("%v: %s", err, in)
		}
		want := decode(t, []byte(in))
		result := want["result"].(map[string]any)
		i := -1
		rest := string(out)
		result["tools"] = slices.DeleteFunc(result["tools"].([]any), func(e any) bool {
			i++
			if !r.Tools.Allows(e.(map[string]any)["name"].(string)) {
				cut++
				return true
			}
			_, after, ok := strings.Cut(rest, elements[i])
			if !ok {
				t.Fatalf("element %s is missing or changed\n in %s\nout %s", elements[i], in, out)
			}
			rest = after
			return false
		})
		if got := decode(t, out); !reflect.DeepEqual(got, want) {
			t.Fatalf("\n in %s\nout %s", in, out)
		}
	}
	if cut < 5_000 {
		t.Fatalf("only %d elements were cut out", cut)
	}
}

// bigList is about n bytes of tools, every second of which is allowed.
func bigList(n int) []byte {
	b := []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`)
	for i := 0; len(b) < n; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":"%s_%d","description":"Get one issue\nof a \"repository\"","inputSchema":{"type":"object","properties":{"owner":{"type":"string"},`+
			`"repo":{"type":"string"},"number":{"type":"integer","minimum":1}},"required":["owner","repo"]}}`, []string{"ok", "no"}[i%2], i)
	}
	return append(b, "]}}"...)
}

func TestHugeLists(t *testing.T) {
	in := bigList(10 << 20)
	start := time.Now()
	out, err := rules().sieveFor(mcp.ToolsList).apply(in)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Minute { // some 30 ms; with the square of the elements, far more
		t.Errorf("10 MB took %s", took)
	}
	tools := decode(t, out)["result"].(map[string]any)["tools"].([]any)
	if n := bytes.Count(in, []byte(`"name":"ok`)); len(tools) != n || bytes.Contains(out, []byte(`"no_`)) {
		t.Errorf("%d tools stay of %d", len(tools), n)
	}
	// Backslashes are what a scan for the end of a string may go back over.
	slashes := response(`{"tools":[{"name":"ok","x":"` + strings.Repeat(`\\`, 5<<20) + `\""}]}`)
	if out, err = rules().sieveFor(mcp.ToolsList).apply([]byte(slashes)); err != nil || string(out) != slashes {
		t.Errorf("changed: %v", err)
	}
}

func BenchmarkList(b *testing.B) {
	in := bigList(1 << 20)
	s := rules().sieveFor(mcp.ToolsList)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.apply(in); err != nil {
			b.Fatal(err)
		}
	}
}
