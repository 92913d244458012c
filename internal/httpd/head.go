package httpd

import (
	"bytes"
	"net/http"
)

// maxFields bounds the header lines of one request, whatever their size: each
// takes memory beside its bytes.
const maxFields = 500

// headEnd finds the end of the head at the start of b. seen bytes of b were
// looked at before. It returns the length of the head with its empty line; 0:
// it is not all there.
func headEnd(b []byte, seen int) (int, error) {
	for {
		i := bytes.IndexByte(b[seen:], '\n')
		if i < 0 {
			return 0, nil
		}
		i += seen
		if i == 0 || b[i-1] != '\r' {
			return 0, errLineEnd
		}
		if i == 1 {
			return 0, errLine
		}
		if b[i-2] == '\n' {
			return i + 1, nil
		}
		seen = i + 1
	}
}

// field is where a header line has its parts, in the head.
type field struct{ name, nameEnd, value, valueEnd int32 }

// parse checks the head and fills x in. It changes names in the head to their
// canonical form where they lie, and copies the head once.
func (x *exchange) parse(head []byte, fields []field) (message, []field, error) {
	m := message{length: -1}
	method, target, proto, ok := splitLine(head)
	if !ok {
		return m, fields, errLine
	}
	if !protocol(&x.req, head[proto:proto+len("HTTP/1.1")]) {
		return m, fields, errVersion
	}
	fields, err := splitFields(head, proto+len("HTTP/1.1\r\n"), fields[:0])
	if err != nil {
		return m, fields, err
	}
	text := string(head)
	x.req.Method = text[:method]
	x.req.RequestURI = text[method+1 : target]
	x.req.Proto = text[proto : proto+len("HTTP/1.1")]
	if parseTarget(&x.url, x.req.Method, x.req.RequestURI) != nil {
		return m, fields, errTarget
	}
	x.req.URL = &x.url
	x.req.Header = make(http.Header, len(fields))
	values := make([]string, len(fields))
	for i, f := range fields {
		name, value := text[f.name:f.nameEnd], text[f.value:f.valueEnd]
		if add, err := x.special(&m, name, value); err != nil {
			return m, fields, err
		} else if !add {
			continue
		}
		if more, ok := x.req.Header[name]; ok {
			x.req.Header[name] = append(more, value)
			continue
		}
		values[i] = value
		x.req.Header[name] = values[i : i+1 : i+1]
	}
	return m, fields, x.judge(&m)
}

// splitLine finds the parts of "METHOD TARGET HTTP/1.1": where method and
// target end, and where the protocol begins.
func splitLine(head []byte) (method, target, proto int, ok bool) {
	end := bytes.IndexByte(head, '\r')
	method = bytes.IndexByte(head[:max(end, 0)], ' ')
	proto = end - len("HTTP/1.1")
	if method < 1 || proto < method+3 || head[proto-1] != ' ' || head[end+1] != '\n' {
		return 0, 0, 0, false
	}
	target = proto - 1
	p := head[proto:end]
	ok = all(head[:method], isToken) &&
		string(p[:5]) == "HTTP/" && p[6] == '.' && digit(p[5]) && digit(p[7])
	for _, ch := range head[method+1 : target] {
		ok = ok && ch > ' ' && ch != 0x7F
	}
	return method, target, proto, ok
}

func digit(ch byte) bool { return '0' <= ch && ch <= '9' }

// protocol sets the version; false: it is not spoken here.
func protocol(r *http.Request, p []byte) bool {
	r.ProtoMajor, r.ProtoMinor = int(p[5]-'0'), int(p[7]-'0')
	return r.ProtoMajor == 1
}

// splitFields finds the header lines from at on, and checks and canonicalises
// them. Lines are known to end in CRLF, and the last to be empty.
func splitFields(head []byte, at int, fields []field) ([]field, error) {
	for head[at] != '\r' || head[at+1] != '\n' {
		f, next, err := splitField(head, at)
		if err != nil {
			return fields, err
		}
		if len(fields) == maxFields {
			return fields, errLongHead
		}
		fields = append(fields, f)
		at = next
	}
	return fields, nil
}

func splitField(head []byte, at int) (f field, next int, err error) {
	colon, up := at, true
	for class[head[colon]]&isToken != 0 {
		switch ch := head[colon]; {
		case up && class[ch]&isLower != 0, !up && class[ch]&isUpper != 0:
			head[colon] = ch ^ 0x20
		}
		up = head[colon] == '-'
		colon++
	}
	// This refuses continuation lines, too (RFC 9112, section 5.2).
	if colon == at || head[colon] != ':' {
		return f, 0, errField
	}
	value := colon + 1
	end := value
	for class[head[end]]&isValue != 0 {
		end++
	}
	if head[end] != '\r' || head[end+1] != '\n' {
		return f, 0, errValue
	}
	next = end + 2
	for value < end && (head[value] == ' ' || head[value] == '\t') {
		value++
	}
	for value < end && (head[end-1] == ' ' || head[end-1] == '\t') {
		end--
	}
	return field{int32(at), int32(colon), int32(value), int32(end)}, next, nil
}
