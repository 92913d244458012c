package process

import (
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// capabilities are what the client of a process of its own declared.
type capabilities struct{ sampling, elicitation, roots bool }

func readCapabilities(init *wire.Message) capabilities {
	raw := init.Bytes(init.P.Capabilities)
	has := func(name string) bool {
		_, ok := wire.Lookup(raw, name)
		return raw != nil && ok
	}
	return capabilities{has("sampling"), has("elicitation"), has("roots")}
}

// allow tells whether a request may wait for a stream of the client: one that
// the client never said it can answer is refused at once instead.
func (c capabilities) allow(m mcp.Method) bool {
	switch m {
	case mcp.SamplingCreateMessage:
		return c.sampling
	case mcp.ElicitationCreate:
		return c.elicitation
	case mcp.RootsList:
		return c.roots
	}
	return true
}

// maxTrackedTasks bounds the tasks of one session whose progress is routed.
const maxTrackedTasks = 256

// trackTaskLocked: a call that began a task (2025-11-25, tasks) keeps its
// progress token after the response, until the task ends. The answer to
// tasks/result is such an end.
func (c *conn) trackTaskLocked(k *call, msg *wire.Message) {
	if k.taskID != "" {
		c.endTaskLocked(k.taskID)
		return
	}
	span, ok := wire.Lookup(msg.Raw, "result", "task", "taskId")
	id, isString := wire.Unquote(span.Of(msg.Raw))
	if !ok || !isString || len(c.tasks) >= maxTrackedTasks {
		return
	}
	k.taskID = string(id)
	if c.tasks == nil {
		c.tasks = make(map[uint64]*call)
	}
	c.tasks[k.n] = k
}

func (c *conn) taskStatusLocked(msg *wire.Message) {
	id, _ := wire.Unquote(msg.Bytes(msg.P.TaskID))
	status, _ := wire.Lookup(msg.Raw, "params", "status")
	switch string(status.Of(msg.Raw)) {
	case `"completed"`, `"failed"`, `"cancelled"`:
		c.endTaskLocked(string(id))
	}
}

func (c *conn) endTaskLocked(id string) {
	for n, k := range c.tasks {
		if k.taskID == id {
			delete(c.tasks, n)
		}
	}
}
