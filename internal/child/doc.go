// Package child runs one operating system process that speaks in lines: it
// starts it, cuts its standard output into lines, queues lines for its standard
// input, drains its standard error, and stops it together with all that it
// started. A line is bytes; what stands in it is the caller's business.
//
// The path of one line each way:
//
//	Process.Write                  caller: bound, queue, wake the writer
//	  Process.feed                 writer goroutine: batch, one write(2)
//	    ~ stdin of the process
//	    ~ stdout of the process
//	  Process.read                 reader goroutine: read(2)
//	    framer.filled              cut at 0x0A
//	      Handler.Line             a fresh slice, now the handler's
//	  Process.drain                stderr goroutine: ring, rate-limited log
//
// The life of a process is decided in one place, Process.live:
//
//	Supervisor.Start               slot, pipes, fork in the spawner's thread
//	  Process.live                 first of: exit, Stop, end of stdout, failed write
//	    Process.shutdown           close stdin, wait, SIGTERM, wait, SIGKILL
//	    Process.wait               waiter goroutine: exit status, before the pid is free
//	    Process.clearRest          what the leader left behind in its group and sessions
//	    Handler.Exit               from the reader, after the last Line
//	    Supervisor.release         slot free, then Done
//
// Four things keep processes from staying behind. Each process leads its own
// session and group, which is signalled as a whole (a job object on Windows). On
// Linux a parent-death signal kills the leader when this process dies; it
// follows the thread that forked, so all starts run in one locked thread. A
// watchdog, this program started again, kills the groups when the pipe to it
// ends. And on Linux this process is the reaper of its orphans, and looks
// through /proc for descendants that left their group.
//
// Rough edges: a descendant that leaves the session and loses its parent
// between two looks through /proc (every five seconds and before each stop)
// cannot be told from a stranger and lives on. Outside Linux only the group is
// known.
package child
