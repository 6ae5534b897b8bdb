-- The gateway's one step on a session: events for the listeners and the position, together.
-- KEYS: speech state, audio stream, segments stream.
-- ARGV: token, new revision, turn that must not be cancelled ('': any), segments entries done up
--   to here ('': none), oldest audio id to keep ('': all), then pairs up to '' (field, value;
--   value '\0' deletes the field, '@first' is the id of the first event), then payloads.
-- Returns {status, id of the first event appended}:
--   1 done, 0 was done already, -1 another owner, -2 state is gone or rewound, -3 turn cancelled.
local held = redis.call('HMGET', KEYS[1], 'token', 'rev')
if not held[1] then return {-2, ''} end
if held[1] ~= ARGV[1] then return {-1, ''} end
local rev = tonumber(held[2] or '0')
local new = tonumber(ARGV[2])
if rev == new then return {0, redis.call('HGET', KEYS[1], 'first_id') or ''} end
if rev + 1 ~= new then return {-2, ''} end
if ARGV[3] ~= '' and redis.call('HEXISTS', KEYS[1], 'cancelled:' .. ARGV[3]) == 1 then
  return {-3, ''}
end

-- First what is done with is trimmed: a full server goes on then, see docs/REDIS.md.
redis.call('XTRIM', KEYS[3], 'MINID', ARGV[4] == '' and '0' or ARGV[4])
local trimmed = redis.call('XTRIM', KEYS[2], 'MINID', ARGV[5] == '' and '0' or ARGV[5])
if trimmed > 0 then redis.call('HSET', KEYS[1], 'kept_from', ARGV[5]) end

redis.call('HSET', KEYS[1], 'rev', ARGV[2])
local payloads = 6
while ARGV[payloads] ~= '' do payloads = payloads + 2 end
local first = ''
for i = payloads + 1, #ARGV do
  local id = redis.call('XADD', KEYS[2], '*', 'm', ARGV[i])
  if first == '' then first = id end
end
redis.call('HSET', KEYS[1], 'first_id', first)
for i = 6, payloads - 2, 2 do
  local field, value = ARGV[i], ARGV[i + 1]
  if value == '\0' then
    redis.call('HDEL', KEYS[1], field)
  else
    redis.call('HSET', KEYS[1], field, value == '@first' and first or value)
  end
end
return {1, first}
