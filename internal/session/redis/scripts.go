package redis

import "github.com/redis/rueidis"

// The scripts: each is one step for everyone. KEYS are the record's and the seen
// key. The record lives twice the idle time and is prolonged once less than one
// and a half of it is left, so it always outlives the seen key.
var (
	// {record, seen, milliseconds left}, or nil where either is not there.
	readScript = rueidis.NewLuaScript(`
local record = redis.call('GET', KEYS[1])
local seen = redis.call('GET', KEYS[2])
if not record or not seen then return false end
return {record, seen, redis.call('PTTL', KEYS[2])}`)

	// ARGV: record, seen, idle time, twice that. 1, or 0 where one is there.
	createScript = rueidis.NewLuaScript(`
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 2 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[4])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1`)

	// ARGV: tag of the record that is to be replaced, new record, time seen or ''.
	// The seen key's value as it is now; {record, seen} where the tag is another's;
	// nil where nothing is there.
	swapScript = rueidis.NewLuaScript(`
local seen = redis.call('GET', KEYS[2])
local tag = redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1)
if not seen or tag == '' then return false end
if tag ~= ARGV[1] then return {redis.call('GET', KEYS[1]), seen} end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
if ARGV[3] ~= '' then
  seen = string.match(seen, '^%d+') .. ' ' .. ARGV[3]
  redis.call('SET', KEYS[2], seen, 'KEEPTTL')
end
return seen`)

	// ARGV: time seen. The idle time in milliseconds, or nil.
	touchScript = rueidis.NewLuaScript(`
local seen = redis.call('GET', KEYS[2])
local left = redis.call('PTTL', KEYS[1])
if not seen or left == -2 then return false end
local idle = string.match(seen, '^%d+')
redis.call('SET', KEYS[2], idle .. ' ' .. ARGV[1], 'PX', idle)
if left < idle * 1.5 then redis.call('PEXPIRE', KEYS[1], string.format('%.0f', idle * 2)) end
return tonumber(idle)`)

	// 1 where both were there, else 0.
	deleteScript = rueidis.NewLuaScript(`
local found = redis.call('EXISTS', KEYS[1], KEYS[2])
redis.call('DEL', KEYS[1], KEYS[2])
return found == 2 and 1 or 0`)

	// Of the registry. KEYS: the set, the replica's key; ARGV: id, value, lease.
	// The set outlives its last member by a day.
	registerScript = rueidis.NewLuaScript(`
redis.call('SADD', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 86400000)
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1`)

	// The same KEYS; ARGV: id. Takes it from the set unless it registered again.
	forgetScript = rueidis.NewLuaScript(`
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('SREM', KEYS[1], ARGV[1]) end
return 1`)

	removeScript = rueidis.NewLuaScript(`
redis.call('DEL', KEYS[2])
redis.call('SREM', KEYS[1], ARGV[1])
return 1`)
)
