package wire

import "testing"

func TestIsErrorResponse(t *testing.T) {
	for text, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":{"error":{}}}`:            false,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`: true,
		` { "id" : {"result":1} , "\u0065rror" : {} } `:             true,
		`{"error":{},"jsonrpc":"2.0","id":1}`:                       true,
		`{"result":{"a":[1,{"b":"}"}]},"id":"error"}`:               false,
		`{}`: false, `[]`: false, ``: false, `{"a"`: false, `{"a":`: false, `{"a":1`: false, `{"a":1,`: false,
	} {
		if got := IsErrorResponse([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
