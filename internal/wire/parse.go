package wire

import (
	"bytes"
	"math"
	"strings"
	"unicode/utf8"
)

// Parse checks that b is one JSON-RPC 2.0 message that may be passed on, and
// finds its parts. White space around it and one BOM before it are allowed
// (RFC 8259 section 8.1 lets a reader ignore a BOM). The message aliases b.
//
// The error is always an *Error. -32700: b is not valid UTF-8 or does not begin
// with a JSON value as RFC 8259 writes it. -32600: nesting beyond MaxDepth, more
// after the first value, or a value that breaks a rule of JSON-RPC or MCP, or
// in which a member that the proxy reads stands twice. A syntax error
// anywhere in the value comes before faults of the second kind.
func Parse(b []byte) (m Message, err error) {
	if uint64(len(b)) > math.MaxUint32 {
		return m, invalid("longer than 4 GiB")
	}
	if !utf8.Valid(b) {
		return m, &Error{Code: codeParse, Msg: "Parse error: not valid UTF-8"}
	}
	start := afterBOM(b)
	p := parser{b: b[start:]}
	isObject := at(p.b, 0) == '{'
	var end int
	if isObject {
		end = p.walk()
	} else {
		end = scanValue(p.b, 0, 0)
	}
	switch {
	case end == tooDeep:
		return m, scanError(end)
	case end < 0:
		return m, scanError(^(^end + start)) // p.b begins at start
	case skipSpace(p.b, end) < len(p.b):
		return m, invalid("more after the first value")
	case !isObject:
		return m, invalid("not an object")
	}
	p.b = p.b[:end:end]
	kind := p.check()
	if p.fault != "" {
		refused := invalid(p.fault)
		refused.ID = p.legalID()
		return m, refused
	}
	m.Kind = kind
	p.fill(&m)
	return m, nil
}

// parser is the state of one Parse call.
type parser struct {
	b     []byte
	spans [numMembers]Span // first occurrence of each member, exact names only
	seen  uint32           // bit per member: it or a case variant of it was met
	fault string           // first breach of a rule, "" if none yet
	twoID bool             // more than one id: none of them is to be echoed
	other map[string]bool  // folded reserved names in _meta that are no member of ours
}

func (p *parser) fail(why string, name ...string) {
	if p.fault == "" {
		p.fault = why + strings.Join(name, "")
	}
}

// walk reads the object at the start of p.b. It goes into params and
// params._meta and skips all other values.
func (p *parser) walk() int {
	b := p.b
	var begin [len(levels)]int
	l := envelope
	i := skipSpace(b, 1)
	empty := at(b, i) == '}'
	for {
		if !empty {
			nameEnd := scanString(b, i)
			if nameEnd < 0 {
				return nameEnd
			}
			value := scanColon(b, nameEnd)
			if value < 0 {
				return value
			}
			id := p.name(l, b[i:nameEnd])
			if l < meta && id == levels[l+1].owner && at(b, value) == '{' {
				l++
				begin[l] = value
				i = skipSpace(b, value+1)
				empty = at(b, i) == '}'
				continue
			}
			if i = scanValue(b, value, int(l)+1); i < 0 {
				return i
			}
			if id != unread {
				p.spans[id] = span(value, i)
			}
		}
		empty = false
		for i = skipSpace(b, i); at(b, i) == '}'; i = skipSpace(b, i) {
			i++
			if l == envelope {
				return i
			}
			p.spans[levels[l].owner] = span(begin[l], i)
			l--
		}
		if at(b, i) != ',' {
			return ^i
		}
		i = skipSpace(b, i+1)
	}
}

// name enters the member whose name token is given. It returns unread if the
// value is not to be noted: an unknown name, a case variant, or a second one.
func (p *parser) name(l level, token []byte) member {
	id := find(l, token[1:len(token)-1]) // a hit has no escapes
	exact := id != unread
	if !exact {
		name, _ := Unquote(token)
		if id = find(l, name); id != unread {
			exact = true
		} else if id = findVariant(l, name); id == unread {
			if l == meta && IsReserved(name) {
				p.reservedName(name)
			}
			return unread
		}
	}
	if l == envelope && !exact {
		p.fail("a member's name differs only by case from ", names[id])
		return unread
	}
	again := p.seen&(1<<id) != 0
	p.seen |= 1 << id
	if again {
		p.fail("more than one member ", names[id])
		p.twoID = p.twoID || id == envID
		return unread
	}
	if !exact {
		return unread
	}
	return id
}

// reservedName enters a reserved name in _meta that the proxy does not know.
// What it does not read must be unambiguous, too, to be safe for who reads it.
func (p *parser) reservedName(name []byte) {
	key := string(bytes.Map(foldRune, name))
	if p.other[key] {
		p.fail("more than one _meta member of one name beginning with ", reserved)
	}
	if p.other == nil {
		p.other = map[string]bool{}
	}
	p.other[key] = true
}

// fill writes the result in place: a Message is large enough for a copy to count.
func (p *parser) fill(m *Message) {
	at := &p.spans
	m.Raw = p.b
	m.ID, m.Method, m.Params = at[envID], at[envMethod], at[envParams]
	m.Result, m.Error = at[envResult], at[envError]
	m.P = ParamSpans{
		Meta: at[parMeta], Token: at[parToken], RequestID: at[parRequestID], URI: at[parURI],
		Name: at[parName], ProtocolVersion: at[parProtocolVersion], Level: at[parLevel],
		Capabilities: at[parCapabilities], ClientInfo: at[parClientInfo], Task: at[parTask],
		TaskID: at[parTaskID], RequestState: at[parRequestState], InputResponses: at[parInputResponses],
		Arguments: at[parArguments], Cursor: at[parCursor],
		MetaToken: at[metaToken], MetaVersion: at[metaVersion], MetaClientCaps: at[metaClientCaps],
		MetaClientInfo: at[metaClientInfo], MetaLogLevel: at[metaLogLevel],
		MetaSubscription: at[metaSubscription], MetaRelatedTask: at[metaRelatedTask],
	}
}
