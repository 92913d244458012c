package cluster

import "strings"

// Registrations are the keys under which replicas have registered.
func (r *Redis) Registrations() (keys []string) {
	r.t.Helper()
	for _, key := range strings.Fields(r.Do("KEYS", "*")) {
		if i := strings.LastIndexByte(key, ':'); i > 0 && r.Do("TYPE", key[:i]) == "set" {
			keys = append(keys, key)
		}
	}
	return keys
}

// PeerAddr is where the replica registered under key listens for its peers.
func (r *Redis) PeerAddr(key string) string {
	r.t.Helper()
	_, rest := cutField(r.Do("GET", key)[1:]) // behind the version: id, address
	addr, _ := cutField(rest)
	return addr
}

func cutField(s string) (field, rest string) { return s[1 : 1+s[0]], s[1+s[0]:] }

// Forge registers a replica as one may who can write to Redis and does not know the
// secret: what another has registered, under an id and with an address of its own.
func (r *Redis) Forge(key string) {
	r.t.Helper()
	set := key[:strings.LastIndexByte(key, ':')]
	id := strings.Repeat("f", 22)
	value := r.Do("GET", key)
	theirs, rest := cutField(value[1:])
	value = value[:1] + string(rune(len(id))) + id + rest
	if theirs == id {
		r.t.Fatal("the forged id is one that exists")
	}
	r.Do("SADD", set, id)
	r.Do("SET", set+":"+id, value, "EX", "60")
}
