package wire

import (
	"unicode/utf8"
)

// MaxIDLen is how many bytes a string id may have between its quotes. A number
// may have as many digits. The specifications set no limit; ids are kept for
// every pending call, so the proxy has to.
const MaxIDLen = 1024

// ValidIDToken reports whether tok is an id as MCP allows it: a string or an
// integer, never null (MCP, basic, "Requests"; JSON-RPC 2.0 section 4 leaves
// fractions and null open). An integer is written without fraction, exponent and
// leading zeros.
func ValidIDToken(tok []byte) bool {
	if at(tok, 0) == '"' {
		return len(tok) <= MaxIDLen+2 && scanString(tok, 0) == len(tok) && utf8.Valid(tok)
	}
	if len(tok) > MaxIDLen || scanNumber(tok, 0) != len(tok) {
		return false
	}
	for _, c := range tok {
		if c == '.' || c|0x20 == 'e' {
			return false
		}
	}
	return true
}

// token returns the raw token of a member, nil when it is absent.
func (p *parser) token(id member) []byte { return p.spans[id].Of(p.b) }

// legalID returns the id token that an answer to a refused message may echo.
func (p *parser) legalID() []byte {
	if id := p.token(envID); !p.twoID && ValidIDToken(id) {
		return id
	}
	return nil
}

// check applies the rules of JSON-RPC 2.0 sections 4 and 5 and of MCP, basic,
// "Messages". It records the first breach in p.fault.
func (p *parser) check() Kind {
	if v := p.token(envVersion); string(v) != `"2.0"` { // as nearly everyone writes it
		if v, _ := Unquote(v); string(v) != "2.0" {
			p.fail(`jsonrpc is not "2.0"`)
		}
	}
	switch at(p.token(envParams), 0) {
	case 0, '{', '[', 'n':
	default:
		p.fail("params is neither an object nor an array")
	}
	if p.spans[envMethod].Present() {
		return p.checkCall()
	}
	p.checkResponse()
	return Response
}

// checkCall is for messages with a method.
func (p *parser) checkCall() Kind {
	if method := p.token(envMethod); method[0] != '"' || len(method) == 2 {
		p.fail("method is not a string of one character or more")
	}
	if p.spans[envResult].Present() || p.spans[envError].Present() {
		p.fail("method together with result or error")
	}
	if !p.spans[envID].Present() {
		return Notification
	}
	if !ValidIDToken(p.token(envID)) {
		p.fail("id is neither an integer nor a string of at most 1024 bytes")
	}
	return Request
}

// checkResponse is for messages without a method. An error may come without
// an id, or with null, when its sender could not read one (JSON-RPC 2.0 section 5).
func (p *parser) checkResponse() {
	hasResult, hasError := p.spans[envResult].Present(), p.spans[envError].Present()
	switch {
	case hasResult && hasError:
		p.fail("both result and error")
	case !hasResult && !hasError:
		p.fail("none of method, result and error")
	case hasError && at(p.token(envError), 0) != '{':
		p.fail("error is not an object")
	}
	id := p.token(envID)
	if hasError && string(id) == "null" {
		p.spans[envID] = Span{}
		return
	}
	if hasError && id == nil {
		return
	}
	if !ValidIDToken(id) {
		p.fail("id of a response is neither an integer nor a string of at most 1024 bytes")
	}
}
