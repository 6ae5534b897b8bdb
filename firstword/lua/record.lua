-- Record how a deployment runs, as far as nothing is recorded: the word of who came first holds.
-- KEYS: config. ARGV: name and value of each field, the partition count first. Returns what is recorded
-- of that.
redis.call('PERSIST', KEYS[1])  -- lets a full server go on, see docs/REDIS.md
for i = 1, #ARGV, 2 do redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) end
return redis.call('HGET', KEYS[1], ARGV[1])
