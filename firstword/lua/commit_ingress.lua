-- The cursor of an ingress stream moves, and what it has passed is trimmed.
-- KEYS: state hash, stream, open set.
-- ARGV: token, cursor, first id to keep, number of sessions now held, those, then those now not.
-- Returns 1 done, -1 another owner.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return -1 end
local opened = tonumber(ARGV[4])
for i = 5, 4 + opened do redis.call('ZADD', KEYS[3], 0, ARGV[i]) end
for i = 5 + opened, #ARGV do redis.call('ZREM', KEYS[3], ARGV[i]) end
redis.call('HSET', KEYS[1], 'cursor', ARGV[2])
redis.call('XTRIM', KEYS[2], 'MINID', ARGV[3])
return 1
