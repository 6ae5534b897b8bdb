-- Offer units to the workers of a stage: those nobody owns become free and the workers are rung.
-- KEYS: free, owners, arrivals. ARGV: unit... Returns how many were new.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('PERSIST', KEYS[1])  -- lets a full server go on, see docs/REDIS.md
local new = 0
for _, unit in ipairs(ARGV) do
  if redis.call('HEXISTS', KEYS[2], unit) == 0 then
    new = new + redis.call('ZADD', KEYS[1], 'NX', now, unit)
  end
end
if new > 0 then redis.call('XADD', KEYS[3], 'MAXLEN', '~', 100, '*', 'n', new) end
return new
