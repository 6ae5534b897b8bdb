-- A worker leaves a session in which nothing is to do: idle, closed or handed over.
-- KEYS: state hash, stream the state's position is in, then further keys of the session.
-- ARGV: token, position ('': leave whatever has come), expiry in seconds of each key (0: none).
-- Returns 1 left, 0 work lies beyond the position, -1 another owner.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return -1 end
if ARGV[2] ~= '' and #redis.call('XRANGE', KEYS[2], '(' .. ARGV[2], '+', 'COUNT', 1) > 0 then
  return 0
end
redis.call('HDEL', KEYS[1], 'token', 'worker')
for i, key in ipairs(KEYS) do
  if ARGV[2 + i] ~= '0' then redis.call('EXPIRE', key, ARGV[2 + i]) end
end
return 1
