// Package cluster runs several signalbox replicas the way a deployment does, out of real
// parts: a process for each replica, one redis-server, nginx in front, and between the
// replicas and Redis a [Wire] that can be cut, or made slow.
//
//	client → Nginx (round robin, a new connection for each request) → Replica 0, 1, 2
//	                                                                   │        │
//	                                                                 Wire → Redis   Web (an HTTP server in this process)
//
// Every replica offers the same three servers: [Private] has a process for each session,
// [Shared] one process for all of a replica, [OnWeb] is an HTTP server. All of them check
// what they are asked, so that a message which reaches a wrong session shows.
package cluster
