package wire

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
)

// The functions of this file walk over what Parse has found valid, and only that:
// they check nothing of it again.

// Pick finds members of the object at i by their names and notes the values in
// as many places of found; nothing is looked for where a name is empty. It returns
// the position after the object. It is an error if there is no object, if one of
// the members stands twice, or if a name differs from one only by case (Unicode simple
// folding, as in Parse): readers would not agree on what counts.
func Pick(found []Span, raw []byte, i uint32, names ...string) (uint32, error) {
	if raw[i] != '{' {
		return 0, ErrNoObject
	}
	for i = SkipSpace(raw, i+1); raw[i] != '}'; {
		end := walkString(raw, i)
		name, _ := Unquote(raw[i:end])
		value := Span{Start: SkipSpace(raw, SkipSpace(raw, end)+1)} // after the colon
		value.End = SkipValue(raw, value.Start)
		for n, want := range names {
			exact := string(name) == want
			switch {
			case want == "" || !exact && !bytes.EqualFold(name, []byte(want)):
			case !exact || found[n].Present():
				return 0, fmt.Errorf("more than one member %s, or one in other letters", want)
			default:
				found[n] = value
			}
		}
		i = Next(raw, value.End)
	}
	return i + 1, nil
}

// ErrNoObject is what Pick says of another value.
var ErrNoObject = errors.New("no object")

// Next returns where the next member or element begins, or the bracket stands
// that ends all, if the one before ends at i.
func Next(raw []byte, i uint32) uint32 {
	if i = SkipSpace(raw, i); raw[i] == ',' {
		i = SkipSpace(raw, i+1)
	}
	return i
}

// SkipSpace returns where what is no white space begins, from i on.
func SkipSpace(raw []byte, i uint32) uint32 {
	for raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\r' || raw[i] == '\t' {
		i++
	}
	return i
}

// SkipValue returns the position after the value at i.
func SkipValue(raw []byte, i uint32) uint32 {
	switch raw[i] {
	case '"':
		return walkString(raw, i)
	case '{', '[':
		return walkContainer(raw, i)
	}
	for { // a number, true, false or null stands inside of something, which ends
		switch raw[i] {
		case ',', ']', '}', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
}

func walkContainer(raw []byte, i uint32) uint32 {
	for open := 0; ; {
		switch raw[i] {
		case '"':
			i = walkString(raw, i)
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		if i++; open == 0 {
			return i
		}
	}
}

// walkString looks for a quote with an even number of backslashes before it.
func walkString(raw []byte, i uint32) uint32 {
	for i++; ; i++ {
		i += uint32(bytes.IndexByte(raw[i:], '"'))
		n := uint32(1)
		for raw[i-n] == '\\' { // the opening quote is none
			n++
		}
		if n%2 == 1 {
			return i + 1
		}
	}
}

// Members yields the members of the object at i: the token of the name, and the
// value.
func Members(raw []byte, i uint32) iter.Seq2[Span, Span] {
	return func(yield func(name, value Span) bool) {
		for i := SkipSpace(raw, i+1); raw[i] != '}'; {
			name := Span{Start: i, End: walkString(raw, i)}
			value := Span{Start: SkipSpace(raw, SkipSpace(raw, name.End)+1)} // after the colon
			value.End = SkipValue(raw, value.Start)
			if !yield(name, value) {
				return
			}
			i = Next(raw, value.End)
		}
	}
}

// Elements yields the elements of the array at i.
func Elements(raw []byte, i uint32) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for i := SkipSpace(raw, i+1); raw[i] != ']'; {
			value := Span{Start: i, End: SkipValue(raw, i)}
			if !yield(value) {
				return
			}
			i = Next(raw, value.End)
		}
	}
}

// Insert is the edit that puts members, written like `"a":1,"b":2`, in front of
// those that the object at i has.
func Insert(raw []byte, i uint32, members string) Edit {
	at := i + 1
	if raw[SkipSpace(raw, at)] != '}' {
		members += ","
	}
	return Edit{Span: Span{Start: at, End: at}, New: []byte(members)}
}
