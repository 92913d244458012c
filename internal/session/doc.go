// Package session holds what a client's session is, as data, and the store that
// keeps it. Live objects (connections, streams, processes) are elsewhere: with
// the Record alone another replica, or this one after a restart, knows what to
// attach to and for whom.
//
//	request with a session id → Store.Get → Record → (live session: found, or made from it)
//	state changes            → Store.Update: one function, applied atomically
//	any request              → Store.Touch, now and then
//	DELETE, process died     → Store.Delete
//	nobody came              → the record expires by itself
//
// Memory is the store of one process. What every Store must do is the exported
// test sessiontest.Run.
package session
