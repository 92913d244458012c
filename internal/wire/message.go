package wire

import (
	"strconv"
)

// Span is a half-open range of bytes in [Message.Raw], or in the raw argument
// of the function that returned it. The zero value means absent. A present span
// may be empty; as the target of an [Edit] that is an insertion.
type Span struct{ Start, End uint32 }

// Present reports whether s is a place in a message at all.
func (s Span) Present() bool { return s.End != 0 }

// Of returns the bytes of raw in s, nil when s is absent.
func (s Span) Of(raw []byte) []byte {
	if !s.Present() {
		return nil
	}
	return raw[s.Start:s.End:s.End]
}

func span(start, end int) Span { return Span{uint32(start), uint32(end)} }

// Kind is what a message is by its shape (JSON-RPC 2.0 sections 4 and 5):
// with a method it is a Request if it has an id and a Notification if not;
// without one it is a Response.
type Kind uint8

// The kinds of messages. The zero Kind is none of them.
const (
	Request Kind = iota + 1
	Notification
	Response
)

func (k Kind) String() string {
	switch k {
	case Request:
		return "request"
	case Notification:
		return "notification"
	case Response:
		return "response"
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Message is one valid JSON-RPC message and where its parts stand.
type Message struct {
	// Raw is exactly one JSON object, a part of the bytes given to Parse.
	// Its capacity is its length, so an append copies.
	Raw  []byte
	Kind Kind
	// The raw tokens of the envelope, quotes included. ID is absent, too, in
	// an error response whose id is null.
	ID, Method, Params, Result, Error Span
	P                                 ParamSpans
}

// ParamSpans holds the raw tokens of members of params, whatever their JSON
// type. All are absent if params is no object. A member whose name matches only
// by case folding is never here.
type ParamSpans struct {
	Meta            Span // _meta
	Token           Span // progressToken, of notifications/progress
	RequestID       Span // requestId, of notifications/cancelled
	URI             Span // uri
	Name            Span // name
	ProtocolVersion Span // protocolVersion
	Level           Span // level
	Capabilities    Span // capabilities
	ClientInfo      Span // clientInfo
	Task            Span // task
	TaskID          Span // taskId
	RequestState    Span // requestState
	InputResponses  Span // inputResponses
	Arguments       Span // arguments
	Cursor          Span // cursor

	// Members of params._meta; absent if that is no object.
	MetaToken        Span // progressToken
	MetaVersion      Span // io.modelcontextprotocol/protocolVersion
	MetaClientCaps   Span // io.modelcontextprotocol/clientCapabilities
	MetaClientInfo   Span // io.modelcontextprotocol/clientInfo
	MetaLogLevel     Span // io.modelcontextprotocol/logLevel
	MetaSubscription Span // io.modelcontextprotocol/subscriptionId
	MetaRelatedTask  Span // io.modelcontextprotocol/related-task
}

// MethodName returns the decoded method, nil for a response. It aliases Raw
// unless the method is written with escapes.
func (m *Message) MethodName() []byte {
	name, _ := Unquote(m.Bytes(m.Method))
	return name
}

// Bytes returns the raw token in s, nil when s is absent. It aliases Raw.
func (m *Message) Bytes(s Span) []byte { return s.Of(m.Raw) }

// Codes of JSON-RPC 2.0 section 5.1 that this package reports.
const (
	codeParse   = -32700
	codeInvalid = -32600
)

// Error says why bytes are no message that may be passed on.
type Error struct {
	Code int    // -32700 (no JSON text) or -32600 (no JSON-RPC message)
	Msg  string // fit to be sent as error.message: quotes nothing of the input
	// ID is the raw id token, aliasing the input, if the text is valid JSON and
	// has exactly one id and that one is legal; else nil. Note that the refused
	// message need not have been a request: it may be a response of that id.
	ID []byte
}

func (e *Error) Error() string { return e.Msg + " (" + strconv.Itoa(e.Code) + ")" }

// scanError turns the fault of a scan into an Error.
func scanError(fault int) *Error {
	if fault == tooDeep {
		return invalid("nested deeper than " + strconv.Itoa(MaxDepth))
	}
	return &Error{Code: codeParse, Msg: "Parse error: no valid JSON at byte " + strconv.Itoa(^fault)}
}

func invalid(why string) *Error {
	return &Error{Code: codeInvalid, Msg: "Invalid Request: " + why}
}
