package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// sieve says how the answer to one request is changed.
type sieve struct {
	filter *Filter
	list   string                            // member of the result whose elements are looked at; "" for none
	key    string                            // member of an element that names it
	allows func(f *Filter, name []byte) bool // what that is
	// private: the answer must not be kept for others. Who may have it depends on
	// who asks, which the server does not know.
	private bool
	// strip is the path of a member that is taken out, and nothing else is done.
	strip []string
}

// sieveFor returns nil where the answer to a method stays as it is.
func (r *Rules) sieveFor(m mcp.Method) *sieve {
	s := sieve{private: !r.Shared}
	if m == mcp.Initialize && r.NoTasks {
		return &sieve{strip: []string{"result", "capabilities", "tasks"}}
	}
	switch m {
	case mcp.ToolsList:
		s.filter, s.list, s.key, s.allows = r.Tools, "tools", "name", (*Filter).allows
	case mcp.PromptsList:
		s.filter, s.list, s.key, s.allows = r.Prompts, "prompts", "name", (*Filter).allows
	case mcp.ResourcesList:
		s.filter, s.list, s.key, s.allows = r.Resources, "resources", "uri", (*Filter).allowsURI
	case mcp.ResourcesTemplatesList:
		s.filter, s.list, s.key, s.allows = r.Resources, "resourceTemplates", "uriTemplate", (*Filter).allowsTemplate
	case mcp.ResourcesRead:
		if s.private {
			s.filter = r.Resources
		}
	}
	if s.filter == nil {
		return nil
	}
	found := s // only this one is for the heap
	return &found
}

// apply returns reply, or a copy of it with the changes. An error reply stays
// as it is. The error says why reply cannot be read; the time is linear.
func (s *sieve) apply(reply []byte) ([]byte, error) {
	msg, err := wire.Parse(reply)
	switch {
	case err != nil:
		return nil, err
	case msg.Error.Present():
		return reply, nil
	case !msg.Result.Present():
		return nil, errors.New("no response")
	case s.strip != nil:
		return wire.Remove(reply, s.strip...), nil
	}
	names := []string{s.list, "cacheScope", "ttlMs"}
	if !s.private {
		names = names[:1]
	}
	var found [3]wire.Span
	if _, err := wire.Pick(found[:], msg.Raw, msg.Result.Start, names...); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	list, scope := found[0], s.scope(msg.Raw, msg.Result, found[1], found[2])
	var edits []wire.Edit
	if s.list != "" {
		if edits, err = s.cut(msg.Raw, list); err != nil {
			return nil, err
		}
	}
	if scope.Span.Start < list.Start {
		edits = slices.Insert(edits, 0, scope)
	} else {
		edits = append(edits, scope)
	}
	return splice(reply, msg.Raw, edits), nil
}

// scope is the edit that makes an answer private (MCP 2026-07-28, caching,
// "cacheScope"): in place of what is there, or where only a time to live is, which
// some take for public.
func (s *sieve) scope(raw []byte, result, scope, ttl wire.Span) wire.Edit {
	switch now, _ := wire.Unquote(scope.Of(raw)); {
	case string(now) == "private":
	case scope.Present():
		return wire.Edit{Span: scope, New: []byte(`"private"`)}
	case ttl.Present():
		begin := result.Start + 1
		return wire.Edit{Span: wire.Span{Start: begin, End: begin}, New: []byte(`"cacheScope":"private",`)}
	}
	return wire.Edit{}
}

// cut returns an edit for each run of elements that are not allowed. It takes
// the comma and the white space after the run along, or if nothing follows, those
// before it.
func (s *sieve) cut(raw []byte, list wire.Span) ([]wire.Edit, error) {
	if !list.Present() || raw[list.Start] != '[' {
		return nil, fmt.Errorf("result: no array %s", s.list)
	}
	var edits []wire.Edit
	var run wire.Span // elements to cut out
	var kept uint32   // where the last one ends that stays
	i := wire.SkipSpace(raw, list.Start+1)
	for n := 0; raw[i] != ']'; n++ {
		var key [1]wire.Span
		end, err := wire.Pick(key[:], raw, i, s.key)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", s.list, n, err)
		}
		name, ok := wire.Unquote(key[0].Of(raw))
		if !ok {
			return nil, fmt.Errorf("%s[%d]: no string %s", s.list, n, s.key)
		}
		switch allowed := s.allows(s.filter, name); {
		case !allowed && !run.Present():
			run = wire.Span{Start: i, End: end}
		case !allowed:
			run.End = end
		default:
			if run.Present() {
				edits = append(edits, wire.Edit{Span: wire.Span{Start: run.Start, End: i}})
			}
			run, kept = wire.Span{}, end
		}
		i = wire.Next(raw, end)
	}
	if run.Present() {
		if kept > 0 {
			run.Start = kept
		}
		edits = append(edits, wire.Edit{Span: run})
	}
	return edits, nil
}

// splice makes the edits in raw, the message in reply, in a slice of just the
// length: what is kept for a client must not hold what it never gets.
func splice(reply, raw []byte, edits []wire.Edit) []byte {
	if !slices.ContainsFunc(edits, func(e wire.Edit) bool { return e.Span.Present() }) {
		return reply
	}
	return wire.Splice(nil, raw, edits...)
}
