-- The cursor of an ingress stream moves, and what it has passed is trimmed.
-- KEYS: state hash, stream, open set.
-- ARGV: token, cursor, first id to keep, number of sessions now held, those, then those now not.
-- Returns 1 done, -1 another owner, -2 the stream is not the one the cursor is of.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return -1 end
-- All up to the cursor that is stored was trimmed: what lies there now is of a stream begun anew,
-- and was not read.
local function number(id)
  local ms, seq = string.match(id, '(%d+)-(%d+)')
  return tonumber(ms), tonumber(seq)
end
local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
local stored = redis.call('HGET', KEYS[1], 'cursor')
if oldest and stored then
  local ms, seq = number(oldest[1])
  local to_ms, to_seq = number(stored)
  if ms < to_ms or ms == to_ms and seq <= to_seq then return -2 end
end
redis.call('XTRIM', KEYS[2], 'MINID', ARGV[3])  -- first: a full server goes on then, see docs/REDIS.md
local opened = tonumber(ARGV[4])
for i = 5, 4 + opened do redis.call('ZADD', KEYS[3], 0, ARGV[i]) end
for i = 5 + opened, #ARGV do redis.call('ZREM', KEYS[3], ARGV[i]) end
redis.call('HSET', KEYS[1], 'cursor', ARGV[2])
return 1
