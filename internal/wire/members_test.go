package wire

import "testing"

// Members whose decoded name is d go; the value of e gets an edit.
func TestEditMembers(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                                    `{}`,
		`{"a":1}`:                               `{"a":1}`,
		`{"d":1}`:                               `{}`,
		`{ "d":1 , "d":[{}] }`:                  `{  }`,
		`{"d":1,"a":2}`:                         `{"a":2}`,
		`{"a":1 , "d":2 , "b":3}`:               `{"a":1 , "b":3}`,
		`{"a":1,"d":2,"\u0064":3 }`:             `{"a":1 }`,
		`{"d":0,"a":1,"d":2,"b":3,"d":4}`:       `{"a":1,"b":3}`,
		`{"e":1,"d":{"e":1},"a":{"d":2},"e":3}`: `{"e":null,"a":{"d":2},"e":null}`,
	} {
		raw := []byte(in)
		edits, left := EditMembers(raw, 0, func(name []byte, value Span) Change {
			if string(name) == "e" {
				return Change{Edits: []Edit{{value, []byte("null")}}}
			}
			return Change{Drop: string(name) == "d"}
		})
		got := string(Splice(nil, raw, edits...))
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if _, some := Lookup([]byte(want), "a"); some && !left {
			t.Errorf("%s: nothing is left", in)
		}
		if want == `{}` && left {
			t.Errorf("%s: something is left", in)
		}
	}
}
