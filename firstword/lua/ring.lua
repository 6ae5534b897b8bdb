-- Ring a worker's doorbell. Harmless when run again: the worker looks once more.
-- KEYS: bell. ARGV: unit.
redis.call('PERSIST', KEYS[1])  -- lets a full server go on, see docs/REDIS.md
redis.call('XADD', KEYS[1], 'MAXLEN', '~', 2000, '*', 'u', ARGV[1])
redis.call('EXPIRE', KEYS[1], 60)
return 1
