-- A worker gives up a unit it owns; with offer 1 the others are asked to take it.
-- KEYS: free, owned, owners, arrivals. ARGV: worker, unit, offer 0|1. Returns 1 if it was ours.
if redis.call('HGET', KEYS[3], ARGV[2]) ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[3], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])
if ARGV[3] == '1' then
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), ARGV[2])
  redis.call('XADD', KEYS[4], 'MAXLEN', '~', 100, '*', 'n', 1)
end
return 1
