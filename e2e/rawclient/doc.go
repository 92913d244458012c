// Package rawclient speaks MCP over HTTP by hand, so that tests see and say exactly
// what travels: ids and params are given and returned as JSON text, nothing is decoded
// and encoded again, nothing is retried, and a connection can be reset at any moment.
//
// A [Client] stands for one program with its own TCP connections. It opens sessions of
// both HTTP transports:
//
//	c := rawclient.New("http://127.0.0.1:8080")
//	defer c.Close()
//	s, err := c.Streamable(ctx, rawclient.Options{})
//	m, err := s.Call(ctx, `1`, "tools/call", `{"name":"echo","arguments":{"a":1.0}}`)
package rawclient
