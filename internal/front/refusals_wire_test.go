package front

import (
	"fmt"
	"strings"
)

// wireRefusals: two readers of these bytes could see two requests.
func wireRefusals() []refused {
	smuggled := keep("POST /mcp", ping, hers)
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(ping), ping)
	line := func(c string) string {
		return strings.Replace(req("POST /mcp", ping, hers, "X-Here: x"), "X-Here: x", c, 1)
	}
	return []refused{
		{"a second request without a key behind a good one", 200, "", keep("POST /mcp", `{"jsonrpc":"2.0","id":5,"method":"allowed"}`, hers, asAlice) + smuggled},
		{"a request within the body of a refused one", 401, "missing_credential", keep("POST /mcp", smuggled, hers) + smuggled},
		{"Content-Length and Transfer-Encoding", 400, "", req("POST /mcp", "0\r\n\r\n"+smuggled, hers, asAlice, "Content-Length: 4", "Transfer-Encoding: chunked")},
		{"Transfer-Encoding and Content-Length", 400, "", req("POST /mcp", chunk+"0\r\n\r\n"+smuggled, hers, asAlice, "Transfer-Encoding: chunked", "Content-Length: 4")},
		{"two different Content-Lengths", 400, "", req("POST /mcp", ping, hers, asAlice, "Content-Length: 40", "Content-Length: 0")},
		{"a Content-Length with a sign", 400, "", req("POST /mcp", ping, hers, asAlice, "Content-Length: +40")},
		{"a negative Content-Length", 400, "", req("POST /mcp", ping, hers, asAlice, "Content-Length: -1")},
		{"a Content-Length that overflows", 400, "", req("POST /mcp", ping, hers, asAlice, "Content-Length: 18446744073709551656")},
		{"a Content-Length as a list", 400, "", req("POST /mcp", ping, hers, asAlice, "Content-Length: 40, 0")},
		{"Transfer-Encoding: xchunked", 501, "", req("POST /mcp", chunk, hers, asAlice, "Transfer-Encoding: xchunked")},
		{"Transfer-Encoding: chunked, identity", 501, "", req("POST /mcp", chunk, hers, asAlice, "Transfer-Encoding: chunked, identity")},
		{"Transfer-Encoding twice", 501, "", req("POST /mcp", chunk, hers, asAlice, "Transfer-Encoding: identity", "Transfer-Encoding: chunked")},
		{"Transfer-Encoding behind a vertical tab", 400, "", req("POST /mcp", chunk, hers, asAlice, "Transfer-Encoding: \vchunked")},
		{"a space before the colon of Transfer-Encoding", 400, "", req("POST /mcp", chunk, hers, asAlice, "Transfer-Encoding : chunked")},
		{"a chunk size with a sign", 400, "body", req("POST /mcp", "+"+chunk+"0\r\n\r\n", hers, asAlice, "Transfer-Encoding: chunked")},
		{"a chunk size that overflows", 400, "body", req("POST /mcp", "10000000000000028\r\n"+ping, hers, asAlice, "Transfer-Encoding: chunked")},
		{"a chunk that is longer than it says", 400, "body", req("POST /mcp", "5\r\n"+ping+"\r\n0\r\n\r\n", hers, asAlice, "Transfer-Encoding: chunked")},
		{"a chunk that ends in LF", 400, "body", req("POST /mcp", strings.ReplaceAll(chunk, "\r\n", "\n")+"0\n\n", hers, asAlice, "Transfer-Encoding: chunked")},
		{"a key in a trailer", 401, "missing_credential", req("POST /mcp", chunk+"0\r\nAuthorization: Bearer {alice}\r\n\r\n", hers, "Transfer-Encoding: chunked", "Trailer: Authorization")},
		{"a space before the colon of Authorization", 400, "", line("Authorization : Bearer {alice}")},
		{"a header that goes on in the next line", 400, "", line("Authorization:\r\n Bearer {alice}")},
		{"lines that end in a bare LF", 400, "", strings.ReplaceAll(req("POST /mcp", ping, hers, asAlice), "\r\n", "\n")},
		{"one line that ends in a bare LF", 400, "", line("X: y\nAuthorization: Bearer {alice}")},
		{"a bare CR in a header", 400, "", line("X: y\rAuthorization: Bearer {alice}")},
		{"a NUL in a header", 400, "", line("Authorization: Bearer {alice}\x00")},
		{"a header without a colon", 400, "", line("Authorization Bearer {alice}")},
		{"a header without a name", 400, "", line(": Bearer {alice}")},
		{"a header name with a NUL", 400, "", line("Authorization\x00: Bearer {alice}")},
		{"a space before the first header", 400, "", strings.Replace(req("POST /mcp", ping, hers, asAlice), "\r\nHost", "\r\n Host", 1)},
		{"two spaces in the request line", 400, "", strings.Replace(req("POST /mcp", ping, hers, asAlice), "POST ", "POST  ", 1)},
		{"a tab in the request line", 400, "", strings.Replace(req("POST /mcp", ping, hers, asAlice), "POST ", "POST\t", 1)},
		{"HTTP/0.9", 0, "", "GET /mcp\r\n"},
		{"HTTP/2.0 in a line of HTTP/1", 505, "", strings.Replace(req("POST /mcp", ping, hers, asAlice), "HTTP/1.1", "HTTP/2.0", 1)},
		{"HTTP/3.0", 505, "", strings.Replace(req("POST /mcp", ping, hers, asAlice), "HTTP/1.1", "HTTP/3.0", 1)},
		{"http/1.1 in lower case", 400, "", strings.Replace(req("POST /mcp", ping, hers, asAlice), "HTTP/1.1", "http/1.1", 1)},
		{"Transfer-Encoding in HTTP/1.0", 400, "", strings.Replace(req("POST /mcp", chunk+"0\r\n\r\n", hers, asAlice, "Transfer-Encoding: chunked"), "HTTP/1.1", "HTTP/1.0", 1)},
		{"HTTP/1.0 without a key", 401, "missing_credential", strings.Replace(req("POST /mcp", ping, hers), "HTTP/1.1", "HTTP/1.0", 1)},
		{"an upgrade to h2c without a key", 401, "missing_credential", req("POST /mcp", ping, hers, "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA")},
		{"an upgrade to websocket without a key", 401, "missing_credential", req("GET /mcp", "", hers, "Upgrade: websocket", "Sec-WebSocket-Key: eA==", "Sec-WebSocket-Version: 13")},
		{"X-HTTP-Method-Override", 401, "missing_credential", req("OPTIONS /mcp", "", hers, "X-HTTP-Method-Override: DELETE")},
		{"a compressed body", 415, "content_encoding", req("POST /mcp", ping, hers, asAlice, "Content-Encoding: gzip")},
		{"TLS at a plain port", 400, "", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"},
	}
}

// sizeRefusals: more than anybody needs, or slower.
func sizeRefusals() []refused {
	long := strings.Repeat("x", 70<<10)
	return []refused{
		{"a header of 70 KiB", 431, "", req("POST /mcp", ping, hers, asAlice, "X: "+long)},
		{"a token of 17 KiB", 401, "too_large", req("POST /mcp", ping, hers, "Authorization: Bearer "+long[:17<<10])},
		{"a key of 17 KiB", 401, "unknown_key", req("POST /mcp", ping, hers, "X-API-Key: "+long[:17<<10])},
		{"ten thousand headers", 431, "", req("POST /mcp", ping, hers, asAlice, strings.Repeat("X: y\r\n", 10_000)+"X: y")},
		{"a target of 70 KiB", 431, "", req("POST /mcp?"+long, ping, hers, asAlice)},
		{"a path of 60 KiB", 404, "path", req("POST /"+long[:60<<10], ping, hers, asAlice)},
		{"a session id of 60 KiB", 404, "session_not_found", req("POST /mcp", ping, "Mcp-Session-Id: "+long[:60<<10], asAlice)},
		{"a Last-Event-ID of 60 KiB", 400, "event_id", req("GET /mcp", "", hers, events, asAlice, "Last-Event-ID: "+long[:60<<10])},
		{"a method of 1 KiB", 405, "method", req(strings.Repeat("X", 1<<10)+" /mcp", ping, hers, asAlice)},
		{"a body above the limit", 413, "body_size", req("POST /mcp", strings.Repeat(" ", maxMessage+1), hers, asAlice)},
		{"a body above the limit, in chunks", 413, "body_size", req("POST /mcp", fmt.Sprintf("%x\r\n", maxMessage+1)+strings.Repeat(" ", maxMessage+1)+"\r\n0\r\n\r\n", hers, asAlice, "Transfer-Encoding: chunked")},
		{"a body of a terabyte, to begin with", 413, "body_size", req("POST /mcp", "{", hers, asAlice, "Content-Length: 1099511627776")},
		{"a body of a terabyte without a key", 401, "missing_credential", req("POST /mcp", "{", hers, "Content-Length: 1099511627776")},
		{"a body above the limit over HTTP+SSE", 413, "body_size", req("POST /messages?session_id={old}", strings.Repeat(" ", maxMessage+1), asAlice)},
		{"a body that nests 100,000 deep", 400, "invalid_message", req("POST /mcp", `{"jsonrpc":"2.0","id":1,"method":"x","params":`+strings.Repeat("[", 100_000), hers, asAlice)},
		{"a batch of 1,001 messages", 400, "batch", req("POST /mcp", "["+strings.Repeat(ping+",", 1000)+ping+"]", hers, asAlice)},
		{"a head that drips", 0, "", strings.TrimSuffix(req("POST /mcp", "", hers, asAlice), "\r\n") + dripMark + "X: " + strings.Repeat("x", 300)},
		{"a body that drips", 400, "body", req("POST /mcp", dripMark+strings.Repeat(" ", 300), hers, asAlice, "Content-Length: 300")},
		{"a body that drips without a key", 401, "missing_credential", req("POST /mcp", dripMark+strings.Repeat(" ", 300), hers, "Content-Length: 300")},
		{"a body in chunks that drips", 400, "body", req("POST /mcp", dripMark+strings.Repeat("1\r\n \r\n", 100), hers, asAlice, "Transfer-Encoding: chunked")},
		{"a body that ends early", 400, "body", req("POST /mcp", ping+dripMark+"", hers, asAlice, "Content-Length: 300")},
	}
}
