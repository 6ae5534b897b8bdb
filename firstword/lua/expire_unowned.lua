-- Keys of a session without a gateway get an expiry, as nobody else would remove them.
-- KEYS: speech state, then further keys of the session. ARGV: seconds.
if redis.call('HEXISTS', KEYS[1], 'worker') == 1 then return 0 end
for _, key in ipairs(KEYS) do
  if redis.call('TTL', key) == -1 then redis.call('EXPIRE', key, ARGV[1]) end
end
return 1
