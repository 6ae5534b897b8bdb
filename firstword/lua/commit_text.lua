-- The segmenter's one step on a session: its outputs, its state and how far it has read, together.
-- KEYS: text state, segments stream, audio stream, speech state.
-- ARGV: token, new revision, then pairs up to '' (field, value of the text state), then triples
--   'segments'|'audio', payload, ''   append it
--   'cancel', turn, already done      mark the turn (none: '') and answer the cancel
-- Returns {status, gateway worker}: 1 done, 0 was done already, -1 another owner, -2 state is gone.
local held = redis.call('HMGET', KEYS[1], 'token', 'rev')
if not held[1] then return {-2, ''} end
if held[1] ~= ARGV[1] then return {-1, ''} end
local worker = redis.call('HGET', KEYS[4], 'worker') or ''
local rev = tonumber(held[2] or '0')
local new = tonumber(ARGV[2])
if rev == new then return {0, worker} end
if rev + 1 ~= new then return {-2, worker} end

local i = 3
redis.call('HSET', KEYS[1], 'rev', ARGV[2])
while ARGV[i] ~= '' do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  i = i + 2
end
i = i + 1

local streams = {segments = KEYS[2], audio = KEYS[3]}
while i <= #ARGV do
  local kind, a, b = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if kind == 'cancel' then
    -- What had gone out of this turn when the mark was set; nothing more of it can follow.
    local speech = redis.call('HMGET', KEYS[4], 'turn', 'turn_segments', 'n', 'samples')
    local sent = {segments = 0, n = 0, samples = 0}
    if speech[1] == a then
      sent = {segments = tonumber(speech[2] or 0), n = tonumber(speech[3] or 0),
              samples = tonumber(speech[4] or 0)}
    end
    local done = b == '1' or redis.call('HGET', KEYS[4], 'done_turn') == a
    if not done then redis.call('HSET', KEYS[4], 'cancelled:' .. a, '1') end
    redis.call('XADD', KEYS[3], '*', 'm', cmsgpack.pack({
      v = 1, type = 'turn_cancelled', turn = a, sent = sent, already_done = done}))
  else
    redis.call('XADD', streams[kind], '*', 'm', a)
  end
  i = i + 3
end
return {1, worker}
