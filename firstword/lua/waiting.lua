-- How long the oldest entry after a cursor has waited. Reads only.
-- KEYS: stream. ARGV: cursor. Returns milliseconds, 0 when nothing waits.
local first = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', 1)[1]
if not first then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return math.max(0, now - tonumber(string.match(first[1], '^%d+')))
