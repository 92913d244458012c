package wire

import (
	"bytes"
	"unicode"
)

// member numbers the members that the proxy reads, level by level.
type member int

const unread member = -1

const (
	envVersion member = iota
	envID
	envMethod
	envParams
	envResult
	envError

	parMeta // the most frequent ones stand first
	parName
	parArguments
	parURI
	parToken
	parRequestID
	parProtocolVersion
	parLevel
	parCapabilities
	parClientInfo
	parTask
	parTaskID
	parRequestState
	parInputResponses
	parCursor

	metaToken
	metaVersion
	metaClientCaps
	metaClientInfo
	metaLogLevel
	metaSubscription
	metaRelatedTask

	numMembers
)

// reserved begins the names in _meta that MCP keeps for itself (MCP,
// basic, "_meta"). Folding maps no non-ASCII letter to one of its letters.
const reserved = "io.modelcontextprotocol/"

var names = [numMembers]string{
	envVersion: "jsonrpc",
	envID:      "id",
	envMethod:  "method",
	envParams:  "params",
	envResult:  "result",
	envError:   "error",

	parMeta:            "_meta",
	parName:            "name",
	parArguments:       "arguments",
	parURI:             "uri",
	parToken:           "progressToken",
	parRequestID:       "requestId",
	parProtocolVersion: "protocolVersion",
	parLevel:           "level",
	parCapabilities:    "capabilities",
	parClientInfo:      "clientInfo",
	parTask:            "task",
	parTaskID:          "taskId",
	parRequestState:    "requestState",
	parInputResponses:  "inputResponses",
	parCursor:          "cursor",

	metaToken:        "progressToken",
	metaVersion:      reserved + "protocolVersion",
	metaClientCaps:   reserved + "clientCapabilities",
	metaClientInfo:   reserved + "clientInfo",
	metaLogLevel:     reserved + "logLevel",
	metaSubscription: reserved + "subscriptionId",
	metaRelatedTask:  reserved + "related-task",
}

// level is an object whose members are read.
type level int

const (
	envelope level = iota
	params
	meta
)

// levels says which members stand in an object, and in which member of the
// level above that object is found.
var levels = [...]struct{ from, to, owner member }{
	envelope: {envVersion, parMeta, unread},
	params:   {parMeta, metaToken, envParams},
	meta:     {metaToken, numMembers, parMeta},
}

// find returns the member of l that has this name.
func find(l level, name []byte) member {
	to := levels[l].to
	for id := levels[l].from; id < to; id++ {
		if string(name) == names[id] {
			return id
		}
	}
	return unread
}

// findVariant returns the member of l whose name differs from this one by case
// at most (Unicode simple folding, so U+017F is an s and U+212A a k).
func findVariant(l level, name []byte) member {
	to := levels[l].to
	for id := levels[l].from; id < to; id++ {
		// A variant is never shorter: what folds to an ASCII letter has a byte or more.
		if len(name) >= len(names[id]) && bytes.EqualFold(name, []byte(names[id])) {
			return id
		}
	}
	return unread
}

// IsReserved reports whether a decoded name in _meta begins like MCP's own.
func IsReserved(name []byte) bool {
	return len(name) >= len(reserved) && bytes.EqualFold(name[:len(reserved)], []byte(reserved))
}

// foldRune maps all runes that are equal under simple folding to one of them.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}
