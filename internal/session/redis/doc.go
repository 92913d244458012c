// Package redis is the session.Store of several replicas: records in Redis (6.0
// or later; Valkey), with a copy of what this replica reads in its own memory.
//
//	Get     copy here → it; else one read for all who ask, kept until Redis says
//	        that the key changed
//	Update  read → change → swap if nobody else did, else again with what is there
//	Touch   a second, small key with the time of expiry: the record itself, and so
//	        the copies of other replicas, stay as they are
//	Delete  both keys
//
// # In Redis
//
// HASH is SHA-256 over server name and session id, lengths first, as base64url:
// the id is what a client shows as its right to the session, so it is nowhere in
// the store. The braces put both keys of a session into one slot of a cluster.
//
//	PREFIX:session:{HASH}          the sealed record (XChaCha20-Poly1305)
//	PREFIX:seen:{HASH}             "IDLE_MS SECONDS NANOSECONDS" of the last Touch
//	PREFIX:replica:{replicas}      set of replica ids
//	PREFIX:replica:{replicas}:ID   what a replica registered
//	PREFIX:probe                   written each second to see that writing works
//
// A session exists while both of its keys do. The seen key lives for the idle
// time, by the clock of Redis alone; the record lives longer and is prolonged now
// and then, since each change of it makes the other replicas read it again.
//
// Every field of a record is sealed with a key made from Config.Key, and bound to
// the name of its Redis key, so that it cannot be read, changed or moved to
// another session by whoever has Redis. Whoever has it can still delete a session,
// make it last, or put back an older version of the same record.
//
// # Copies
//
// The connection is in tracking mode (CLIENT TRACKING): Redis tells it when a key
// changes that it read. A copy is dropped then, by a write of this Store, when the
// connection breaks, when the record expires, and after a tenth of the idle time,
// which bounds how old the LastSeen of a copy can be when another replica called
// Touch. A connection that says nothing for a second is asked, and given up when
// it does not answer within Config.Timeout: that bounds how long a copy outlives
// the network. Where Redis, or a proxy in front of it, refuses tracking there are
// no copies: each Get is a round trip, which is logged once.
//
// # Failures
//
// Every call ends within Config.Timeout. Nothing that writes is ever sent twice,
// so that a Create which took place does not come back as ErrExists, nor a Delete
// as ErrNotFound. A record that cannot be opened gives ErrUnavailable with
// ErrSealed in it: to say "not found" would make a client throw away a session
// that replicas with the right key serve.
//
// # Tested with
//
// One Redis 7.0, with and without tracking, paused, killed, restarted, behind TLS;
// a Sentinel that made the replica the master; a cluster of one node: no slot ever
// moved in a test. Valkey and Redis 6 were not tried.
package redis
