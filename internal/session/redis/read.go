package redis

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// copyShare is the part of the idle time after which a copy is read again.
const copyShare = 10

// stored is a record as it stands in Redis.
type stored struct {
	record  session.Record
	unknown []byte // fields of newer versions
	tag     string // of the sealed value
	size    int    // of the sealed value, bytes
	idle    time.Duration
	left    time.Duration // until it expires; of read
	tracked bool          // Redis will tell when it changes; of read
}

// errNotBegun: who was to carry out a read gave up before.
var errNotBegun = errors.New("not begun")

// fly reads k together with all who want it now, and keeps a copy.
func (s *Store) fly(ctx context.Context, k session.Key, n names) (session.Record, error) {
	f, mine := s.cache.join(n.record)
	for !mine {
		select {
		case <-f.landed:
		case <-ctx.Done():
			return session.Record{}, ended(ctx)
		}
		if f.err != errNotBegun {
			return f.record, f.err
		}
		f, mine = s.cache.join(n.record)
	}
	out, err := begin(ctx, s, func(ctx context.Context) (session.Record, error) {
		asked := time.Now()
		st, err := s.read(ctx, k, n)
		var keep *copied
		if err == nil && st.tracked {
			keep = &copied{
				record: st.record, size: st.size + copyCost,
				ends:  asked.Add(st.left),
				stale: asked.Add(max(st.idle/copyShare, time.Second)),
			}
		}
		s.cache.land(n.record, f, st.record, keep, err)
		return st.record, err
	})
	if err != nil {
		s.cache.land(n.record, f, session.Record{}, nil, errNotBegun)
		return session.Record{}, err
	}
	return await(ctx, out)
}

// copyCost is what a copy takes beyond the bytes of its value, roughly.
const copyCost = 512

// read asks Redis for k, once more where the connection breaks meanwhile.
func (s *Store) read(ctx context.Context, k session.Key, n names) (stored, error) {
	tracked := false
	read := func(l *link) rueidis.RedisResult {
		tracked = l.tracked
		return readScript.Exec(ctx, l.client, n.both(), nil)
	}
	res := s.ask(ctx, read)
	if kindOf(notFound(res.Error())) == kindNetwork {
		res = s.ask(ctx, read)
	}
	parts, err := res.ToArray()
	if err != nil {
		return stored{}, notFound(err)
	}
	st, err := s.unpack(k, n, parts)
	if err != nil {
		return stored{}, err
	}
	if len(parts) < 3 {
		return stored{}, errShort
	}
	left, err := parts[2].AsInt64()
	st.left, st.tracked = time.Duration(left)*time.Millisecond, tracked
	return st, err
}

// errShort: the script gave something else than what it says.
var errShort = errors.New("answer of a script is malformed")

// unpack opens a record and its time, the first two of parts.
func (s *Store) unpack(k session.Key, n names, parts []rueidis.RedisMessage) (stored, error) {
	if len(parts) < 2 {
		return stored{}, errShort
	}
	value, err := parts[0].AsBytes()
	if err != nil {
		return stored{}, err
	}
	seen, err := parts[1].ToString()
	if err != nil {
		return stored{}, err
	}
	plain, err := s.sealer.open(n.record, value)
	if err != nil {
		s.noteSealed(k, err)
		return stored{}, err
	}
	st := stored{tag: string(tag(value)), size: len(value)}
	if st.record, st.unknown, err = parseRecord(plain); err != nil {
		return stored{}, err
	}
	st.record.Server, st.record.ID = k.Server, k.ID
	st.idle, st.record.LastSeen, err = parseSeen(seen)
	return st, err
}

var turnSeed = maphash.MakeSeed()

// turn returns which of the Store's turns the session takes.
func (n names) turn(of int) int {
	return int(maphash.String(turnSeed, n.record) % uint64(of))
}

// both returns the keys in the order of the scripts.
func (n names) both() []string { return []string{n.record, n.seen} }
