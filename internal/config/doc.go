// Package config reads the file of serve --config and check: a superset of the
// mcpServers file that desktop clients use, in YAML or in JSON with comments.
//
//	Load
//	└ Parse
//	  ├ parseJSON or parseYAML   bytes → a tree of nodes with positions
//	  ├ duplicates               the same key twice, anywhere
//	  ├ settings                 top-level keys: the flags of serve, as raw text
//	  └ servers
//	    └ server                 one entry of mcpServers
//	      ├ fields               keys and shapes against the table of keys.go
//	      ├ expand               ${VAR} in values
//	      └ transport            what contradicts each other
//
// Content that begins with a brace, a bracket or a // or /* comment is JSON,
// all else YAML; the file's name says nothing.
//
// A file is right as a whole or not at all: all mistakes that can be found at
// once are returned together, each with its line and column. No error and no
// warning repeats a value that may be a secret (env, headers, URLs, anything
// that came from a variable), only the key.
package config
