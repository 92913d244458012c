package policy

import (
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// guard decides for one session.
type guard struct {
	rules    *Rules
	refusals *refusals // of the server
}

// refuse returns the error for a request that the rules do not allow, nil for
// all others. What they have no say in is not looked at.
func (g *guard) refuse(req *upstream.Request) error {
	m := &req.Msg
	if g.rules.NoTasks && ofTask(req) {
		return errNoTasks
	}
	switch req.Method {
	case mcp.ToolsCall:
		return g.named(kindTool, m, m.P.Name)
	case mcp.PromptsGet:
		return g.named(kindPrompt, m, m.P.Name)
	case mcp.ResourcesRead, mcp.ResourcesSubscribe, mcp.ResourcesUnsubscribe:
		return g.named(kindResource, m, m.P.URI)
	case mcp.CompletionComplete:
		return g.completion(m)
	case mcp.SubscriptionsListen:
		return g.subscriptions(m)
	}
	if m.P.Task.Present() && g.rules.sieveFor(req.Method) != nil {
		// Its answer would come by tasks/result, as anything's.
		return g.undecided(kindList, "a list that is filtered cannot be a task")
	}
	return nil
}

// ofTask tells whether a request of the handshake era is about a task, or wants one.
// Those of the per-request era are sealed for whom they are given to.
func ofTask(req *upstream.Request) bool {
	if perRequest(&req.Msg) {
		return false
	}
	switch req.Method {
	case mcp.TasksList, mcp.TasksGet, mcp.TasksResult, mcp.TasksCancel:
		return true
	}
	return req.Method == mcp.ToolsCall && req.Msg.P.Task.Present()
}

// perRequest tells whether a message is of the per-request era: by what it says, for
// a session has no message that says so.
func perRequest(m *wire.Message) bool {
	version, _ := wire.Unquote(m.Bytes(m.P.MetaVersion))
	return mcp.LooksModern(string(version))
}

var errNoTasks = upstream.Errorf(mcp.CodeMethodNotFound, "tasks_shared", "tasks are not offered: the server cannot tell its users apart")

// named is for a request that names what it wants in one member of params.
func (g *guard) named(k kind, m *wire.Message, token wire.Span) error {
	if !g.filters(k) {
		return nil
	}
	name, ok := wire.Unquote(m.Bytes(token))
	if !ok {
		return g.undecided(k, "the request names no "+string(k))
	}
	if g.allows(k, name) {
		return nil
	}
	return g.unknown(k, name, m)
}

// completion looks at the prompt or resource template that an argument is
// completed for.
func (g *guard) completion(m *wire.Message) error {
	if !g.filters(kindPrompt) && !g.filters(kindResource) {
		return nil
	}
	var ref [1]wire.Span
	var found [3]wire.Span
	err := member(ref[:], m, m.Params, "ref")
	if err == nil {
		err = member(found[:], m, ref[0], "type", "name", "uri")
	}
	if err != nil {
		return g.undecided(kindPrompt, "params.ref cannot be read: "+err.Error())
	}
	switch of, _ := wire.Unquote(m.Bytes(found[0])); string(of) {
	case "ref/prompt":
		return g.named(kindPrompt, m, found[1])
	case "ref/resource":
		return g.named(kindTemplate, m, found[2])
	}
	return g.undecided(kindPrompt, "params.ref.type is neither ref/prompt nor ref/resource")
}

// subscriptions looks at the resources that a stream of the per-request era
// asks for (MCP 2026-07-28, basic/patterns/subscriptions).
func (g *guard) subscriptions(m *wire.Message) error {
	if !g.filters(kindResource) {
		return nil
	}
	var asked, uris [1]wire.Span
	err := member(asked[:], m, m.Params, "notifications")
	if err == nil {
		err = member(uris[:], m, asked[0], "resourceSubscriptions")
	}
	if err != nil {
		return g.undecided(kindResource, "params.notifications cannot be read: "+err.Error())
	}
	switch {
	case !uris[0].Present():
		return nil
	case m.Raw[uris[0].Start] != '[':
		return g.undecided(kindResource, "resourceSubscriptions is no array")
	}
	for i := wire.SkipSpace(m.Raw, uris[0].Start+1); m.Raw[i] != ']'; {
		uri := wire.Span{Start: i, End: wire.SkipValue(m.Raw, i)}
		if err := g.named(kindResource, m, uri); err != nil {
			return err
		}
		i = wire.Next(m.Raw, uri.End)
	}
	return nil
}

// member is wire.Pick for a value that may be absent.
func member(found []wire.Span, m *wire.Message, in wire.Span, names ...string) error {
	if !in.Present() {
		return wire.ErrNoObject
	}
	_, err := wire.Pick(found, m.Raw, in.Start, names...)
	return err
}

func (g *guard) filters(k kind) bool {
	switch k {
	case kindTool:
		return g.rules.Tools != nil
	case kindPrompt:
		return g.rules.Prompts != nil
	}
	return g.rules.Resources != nil
}

func (g *guard) allows(k kind, name []byte) bool {
	switch k {
	case kindTool:
		return g.rules.Tools.allows(name)
	case kindPrompt:
		return g.rules.Prompts.allows(name)
	case kindTemplate:
		return g.rules.Resources.allowsTemplate(name)
	}
	return g.rules.Resources.allowsURI(name)
}

// hushed tells whether the session must not hear of a changed resource.
func (g *guard) hushed(notification []byte) bool {
	msg, err := wire.Parse(notification)
	uri, ok := wire.Unquote(msg.Bytes(msg.P.URI))
	if err == nil && ok && g.rules.Resources.allowsURI(uri) {
		return false
	}
	g.refusals.add(kindUpdate, uri)
	return true
}

// unknown is the error of a name that is not there, as servers word it. What a
// client may not use does not exist for it.
func (g *guard) unknown(k kind, name []byte, m *wire.Message) error {
	g.refusals.add(k, name)
	what, code := "Unknown "+string(k), mcp.CodeInvalidParams
	if k == kindResource {
		what = "Resource not found"
		if !perRequest(m) {
			code = mcp.CodeResourceNotFound
		}
	}
	return upstream.Errorf(code, "policy", "%s: %s", what, cut(name, 200))
}

// undecided is the error of a request that cannot be judged.
func (g *guard) undecided(k kind, why string) error {
	g.refusals.add(k, nil)
	return upstream.Errorf(mcp.CodeInvalidParams, "policy", "%s", why)
}
