-- A new owner installs its fencing token before it acts, and gets all that was committed.
-- KEYS: state hash, then further keys of the session; none expires while it has an owner.
-- ARGV: token, worker. Returns the hash as it was, flat.
local before = redis.call('HGETALL', KEYS[1])
redis.call('PERSIST', KEYS[1])  -- lets a full server go on, see docs/REDIS.md
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'worker', ARGV[2])
for _, key in ipairs(KEYS) do redis.call('PERSIST', key) end
return before
