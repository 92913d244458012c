package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Error is one mistake in a file.
type Error struct {
	File         string
	Line, Column int    // from 1; columns count characters
	Path         string // of the key, as mcpServers.crm.url; "" for syntax
	Msg          string
	Hint         string // what to do, if that is known
}

// Error gives one line: file:line:column: path: message; hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	b.WriteByte(':')
	b.WriteString(strconv.Itoa(e.Line))
	b.WriteByte(':')
	b.WriteString(strconv.Itoa(e.Column))
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

func (e *Error) hint(s string) { e.Hint = s }

// Errors are all mistakes of a file, by line. It is never empty.
type Errors []*Error

// Error gives a line for each.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find an Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

func (es Errors) finish(file string) Errors {
	for _, e := range es {
		e.File = file
	}
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return es
}
