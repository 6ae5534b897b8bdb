-- The segmenter's one step on a session: its outputs, its state and how far it has read, together.
-- KEYS: text state, segments stream, audio stream, speech state.
-- ARGV: token, new revision, then pairs up to '' (field, value of the text state), then triples
--   'segments'|'audio', payload, ''   append it
--   'played', turn, 'n samples'        how far a listener had really heard; for the cancel after it
--   'dropped', turns, ''               that cancel stops these too, which never reached the gateway
--   'cancel', turn ('': all), 'done'|'waiting' and the turns that reached the gateway, oldest first:
--       mark what is still to be spoken, publish the one answer
-- Returns {status, gateway worker, last segments id, entries that wait before the gateway}:
--   1 done, 0 was done already, -1 another owner, -2 state is gone or rewound.
local held = redis.call('HMGET', KEYS[1], 'token', 'rev')
if not held[1] then return {-2, '', '', 0} end
if held[1] ~= ARGV[1] then return {-1, '', '', 0} end
local worker = redis.call('HGET', KEYS[4], 'worker') or ''
local rev = tonumber(held[2] or '0')
local new = tonumber(ARGV[2])
if rev == new then
  local last_id = redis.call('HGET', KEYS[1], 'last_id') or ''
  return {0, worker, last_id, redis.call('XLEN', KEYS[2])}
end
if rev + 1 ~= new then return {-2, worker, '', 0} end

-- The text of a turn up to so many samples of its segment n, from what the gateway keeps of its
-- segments (services/tts_gateway/said.py); nil if it keeps nothing of that one.
local function said(n)
  local packed = redis.call('HGET', KEYS[4], 'said:' .. string.format('%d', n))
  return packed and cmsgpack.unpack(packed)
end

local function heard(turn, n, samples)
  local segment = said(n)
  if not segment or segment[1] ~= turn then return nil end
  local text, total = segment[4], segment[6]
  if total == 0 or samples < total then
    local bytes = 0
    for k = 1, #segment[7], 2 do
      if segment[7][k] <= samples then bytes = math.max(bytes, segment[7][k + 1]) end
    end
    text, total = string.sub(segment[5], 1, bytes), samples
  end
  local before = said(n - 1)
  while before and before[1] == turn do
    if text ~= '' and before[3] < segment[2] then text = ' ' .. text end
    text, total, segment, n = before[4] .. text, total + before[6], before, n - 1
    before = said(n - 1)
  end
  return {turn = turn, text = text, samples = total}
end

local i = 3
redis.call('PERSIST', KEYS[1])  -- lets a full server go on, see docs/REDIS.md
redis.call('HSET', KEYS[1], 'rev', ARGV[2])
while ARGV[i] ~= '' do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  i = i + 2
end
i = i + 1

local last = ''
local played, dropped = nil, ''
local streams = {segments = KEYS[2], audio = KEYS[3]}
while i <= #ARGV do
  local kind, a, b = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if kind == 'played' then
    local n, samples = string.match(b, '(%d+) (%d+)')
    played = heard(a, tonumber(n), tonumber(samples))
  elseif kind == 'dropped' then
    dropped = a
  elseif kind == 'cancel' then
    -- Turns after the last one spoken to its end are still to be spoken: those are marked. What had
    -- gone out when the mark was set is `sent`; nothing more of it can follow.
    local speech = redis.call('HMGET', KEYS[4], 'done_turn', 'turn', 'turn_segments', 'n', 'samples')
    local names = {}
    for name in string.gmatch(b, '%S+') do names[#names + 1] = name end
    local known = table.remove(names, 1)
    local from = 1
    for j, name in ipairs(names) do if name == speech[1] then from = j + 1 end end
    local stopped = {}
    for j = from, #names do
      local name = names[j]
      if (a == '' or a == name) and redis.call('HSETNX', KEYS[4], 'cancelled:' .. name, 1) == 1 then
        stopped[#stopped + 1] = name
      end
    end
    local hit = stopped[1]
    for name in string.gmatch(dropped, '%S+') do stopped[#stopped + 1] = name end
    local turn = hit or a
    if turn == '' then turn = names[#names] or '' end
    local sent = {segments = 0, n = 0, samples = 0}
    if speech[2] == turn then
      sent = {segments = tonumber(speech[3] or 0), n = tonumber(speech[4] or 0),
              samples = tonumber(speech[5] or 0)}
    end
    redis.call('XADD', KEYS[3], '*', 'm', cmsgpack.pack({
      v = 1, type = 'turn_cancelled', turn = turn, sent = sent,
      already_done = not hit and known ~= 'waiting', heard = played,
      turns = #stopped > 1 and stopped or nil}))
    played, dropped = nil, ''
  else
    local id = redis.call('XADD', streams[kind], '*', 'm', a)
    if kind == 'segments' then last = id end
  end
  i = i + 3
end
if worker == '' then
  -- Without a gateway nobody would remove these; the one that comes lifts the expiry.
  for k = 2, 4 do
    if redis.call('TTL', KEYS[k]) == -1 then redis.call('EXPIRE', KEYS[k], 86400) end
  end
end
redis.call('HSET', KEYS[1], 'last_id', last)
return {1, worker, last, redis.call('XLEN', KEYS[2])}
