-- Append an entry that a full server must take too: what is moved, or said of work that is done.
-- The only script that must not run twice. KEYS: stream. ARGV: entries to keep ('': all), then
-- fields and values. Returns the id.
redis.call('XTRIM', KEYS[1], 'MINID', '0')  -- it lets a full server go on, see docs/REDIS.md
local fields = {}
for i = 2, #ARGV do fields[i - 1] = ARGV[i] end
if ARGV[1] == '' then return redis.call('XADD', KEYS[1], '*', unpack(fields)) end
return redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', unpack(fields))
