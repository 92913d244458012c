// Package cluster lets the replicas of one Signalbox find each other and forward
// requests to the replica that is home of a session.
//
//	Join → heartbeat:  List → Put (registration: id, address, fingerprint, MAC)   [members.beat]
//
//	a request whose record names another home
//	  → Node.Forward                                  on the replica that got it
//	    → members.lookup: is the home's lease alive?  [at most 1 s old, else the store is asked]
//	    → pool.acquire: a connection to it            [TLS 1.3, both certificates pinned]
//	    → HTTP/2 stream, Signalbox-Peer-* headers  ~  Node.servePeer on the home
//	                                                    → Config.Handler, FromPeer(ctx)
//	    → copyResponse: flushed as it comes        ~  its answer
//
// # Who is a peer
//
// Each start makes a new identity: a random id and a self-signed certificate
// that never leaves the process. The registration in the store ties id, address
// and the certificate's fingerprint together under a MAC by the shared secret;
// it is, in effect, a certificate signed by the secret. Who can write to the
// store but lacks the secret cannot make one; who copies one lacks the private
// key that TLS asks for; under another id it is not valid, for the id is under
// the MAC. So a TLS handshake with a registered certificate proves the secret,
// and nothing more has to be proved for each connection or request.
//
// # Who is alive
//
// Only the clock of the store decides whether a lease is over: a replica asks,
// and compares no clocks. ErrGone is answered only where the store says so and
// has been in reach without a break for long enough that every living replica
// had the time to register again: an outage of the store ends all leases at once
// and nobody may take that for the death of all replicas. See members.trusted.
//
// The memory implementation of Registry is Memory; what each must do is the
// exported test clustertest.Run.
package cluster
