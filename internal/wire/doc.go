// Package wire reads and writes JSON-RPC 2.0 messages without decoding them.
//
// A message stays the bytes it came in. [Parse] validates them in one pass and
// notes where the few members stand that a proxy has to read; everything else
// is carried untouched. So numbers keep their digits, strings their escapes
// and unknown members their place. What is changed is changed by [Splice].
//
// The path of one message:
//
//	Parse                      BOM, UTF-8, one value, nothing after it
//	└─ parser.walk             members of the envelope, of params, of params._meta
//	   ├─ parser.name          which member is this? duplicates, case variants
//	   └─ scanValue            any other value: validated and skipped, no recursion
//	      ├─ scanString        eight bytes at a time
//	      └─ scanScalar        numbers, true, false, null
//	   parser.check            rules of JSON-RPC 2.0 section 4 and 5, and of MCP
//	MethodName, Bytes, Lookup  read
//	Splice, Remove, OneLine    write
//
// # Positions and faults inside the package
//
// The scan functions take a position and return the position after what they
// read. A negative result is a fault: [tooDeep], or ^pos for a syntax error at
// byte pos. Callers hand it on unchanged.
//
// # Why it is strict
//
// A proxy that decides by one reading of a message while the server behind it
// acts on another can be bypassed. Two members of one name, or names that
// differ only by case, are where readings part (encoding/json takes the last
// and folds case; most others do not), so such messages are refused whenever
// the name is one that the proxy reads.
package wire
