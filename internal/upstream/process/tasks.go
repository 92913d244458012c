package process

import (
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// maxTrackedTasks bounds the tasks of one session whose progress is routed.
const maxTrackedTasks = 256

// trackTaskLocked: a call that began a task (2025-11-25, tasks) keeps its
// progress token after the response, until the task ends. The answer to
// tasks/result is such an end, and so is a status that is final.
func (c *conn) trackTaskLocked(k *call, msg *wire.Message) {
	if k.taskID != "" {
		if k.method == mcp.TasksResult || finalStatus(msg, "result") {
			c.endTaskLocked(k.taskID)
		}
		return
	}
	span, ok := wire.Lookup(msg.Raw, "result", "task", "taskId")
	id, isString := wire.Unquote(span.Of(msg.Raw))
	if !ok || !isString {
		return
	}
	if len(c.tasks) >= maxTrackedTasks {
		c.forgetOldestTaskLocked()
	}
	k.taskID = string(id)
	if c.tasks == nil {
		c.tasks = make(map[uint64]*call)
	}
	c.tasks[k.n] = k
}

func (c *conn) taskStatusLocked(msg *wire.Message) {
	if finalStatus(msg, "params") {
		id, _ := wire.Unquote(msg.Bytes(msg.P.TaskID))
		c.endTaskLocked(string(id))
	}
}

func finalStatus(msg *wire.Message, in string) bool {
	status, _ := wire.Lookup(msg.Raw, in, "status")
	switch string(status.Of(msg.Raw)) {
	case `"completed"`, `"failed"`, `"cancelled"`:
		return true
	}
	return false
}

func (c *conn) endTaskLocked(id string) {
	for n, k := range c.tasks {
		if k.taskID == id {
			delete(c.tasks, n)
		}
	}
}

func (c *conn) forgetOldestTaskLocked() {
	oldest := c.nextCall.Load()
	for n := range c.tasks {
		oldest = min(oldest, n)
	}
	delete(c.tasks, oldest)
}
