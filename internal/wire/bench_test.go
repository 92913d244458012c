package wire

import (
	"strings"
	"testing"
)

const call200 = `{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"_meta":{"progressToken":12},` +
	`"name":"search_repositories","arguments":{"query":"language:go stars:>100 signalbox","page":1,"perPage":30,"ok":true}}}`

func payload(n int) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("QUJDREVG", n/8) + `"}]}}`)
}

func benchParse(b *testing.B, in []byte) {
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse200B(b *testing.B)  { benchParse(b, []byte(call200)) }
func BenchmarkParse64KiB(b *testing.B) { benchParse(b, payload(64<<10)) }
func BenchmarkParse1MiB(b *testing.B)  { benchParse(b, payload(1<<20)) }

// A list of tools: many short strings, which is what a string scan likes least.
func BenchmarkParseToolList(b *testing.B) {
	tool := `{"name":"get_issue","description":"Get one issue\nof a repository","inputSchema":{"type":"object",` +
		`"properties":{"owner":{"type":"string"},"repo":{"type":"string"},"number":{"type":"integer","minimum":1}},"required":["owner","repo"]}}`
	benchParse(b, []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`+tool+strings.Repeat(","+tool, 199)+`]}}`))
}

func BenchmarkParseNonASCII(b *testing.B) {
	benchParse(b, []byte(`{"jsonrpc":"2.0","id":1,"result":{"text":"`+strings.Repeat("日本語テキスト", 10_000)+`"}}`))
}
