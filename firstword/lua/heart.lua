-- One heartbeat of a worker: renew its lease on the server's clock, free what dead workers held,
-- claim up to a fair share of what is free.
-- KEYS: workers, draining, free, owned, owners. ARGV: worker, lease ms, capacity, draining 0|1.
-- Returns {known, share, held, left, taken, claimed units...}; left: units that stay free; taken: units
-- that this beat took from dead workers. Known 0: the worker's lease had been given away (or the server
-- forgot it), so all it holds belongs to others: it must drop everything.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local me, lease, capacity = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local deadline = redis.call('ZSCORE', KEYS[1], me)
local late = deadline and tonumber(deadline) < now
redis.call('PERSIST', KEYS[1])  -- lets a full server go on, see docs/REDIS.md
redis.call('ZADD', KEYS[1], now + lease, me)
if ARGV[4] == '1' then redis.call('SADD', KEYS[2], me) else redis.call('SREM', KEYS[2], me) end

-- What is held stands twice, by worker and by unit. A server that evicts may have lost one of them:
-- what the list by worker has not is free, what the map by unit has not is put there again.
if redis.call('ZCARD', KEYS[4]) ~= redis.call('HLEN', KEYS[5]) then
  local holders = {}
  for _, pair in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
    local worker, unit = string.match(pair, '^(%S+) (.*)$')
    local other = holders[unit]
    if other then
      local loser = redis.call('HGET', KEYS[5], unit) == worker and other or worker
      redis.call('ZREM', KEYS[4], loser .. ' ' .. unit)
      worker = loser == worker and other or worker
    end
    holders[unit] = worker
  end
  for _, unit in ipairs(redis.call('HKEYS', KEYS[5])) do
    if not holders[unit] then
      redis.call('HDEL', KEYS[5], unit)
      redis.call('ZADD', KEYS[3], 'NX', now, unit)
    end
  end
  for unit, worker in pairs(holders) do redis.call('HSET', KEYS[5], unit, worker) end
end

local taken = 0
local expired = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
for _, worker in ipairs(expired) do
  if late then
    -- We were late ourselves: the server was away, not the others. They get time to speak up.
    redis.call('ZADD', KEYS[1], now + lease, worker)
  else
    local units = redis.call('ZRANGEBYLEX', KEYS[4], '[' .. worker .. ' ', '(' .. worker .. '!')
    taken = taken + #units
    for _, pair in ipairs(units) do
      local unit = string.sub(pair, #worker + 2)
      redis.call('ZREM', KEYS[4], pair)
      redis.call('HDEL', KEYS[5], unit)
      redis.call('ZADD', KEYS[3], now, unit)
    end
    redis.call('ZREM', KEYS[1], worker)
    redis.call('SREM', KEYS[2], worker)
  end
end

local held = redis.call('ZLEXCOUNT', KEYS[4], '[' .. me .. ' ', '(' .. me .. '!')
local able = math.max(1, redis.call('ZCARD', KEYS[1]) - redis.call('SCARD', KEYS[2]))
local waiting = redis.call('ZCARD', KEYS[3])
local share = math.ceil((redis.call('ZCARD', KEYS[4]) + waiting) / able)
local reply = {deadline and 1 or 0, share, 0, 0, taken}
if ARGV[4] ~= '1' and waiting > 0 and not (late and able > 1) then
  local room = math.min(share, capacity) - held
  if room > 0 then
    for _, unit in ipairs(redis.call('ZRANGE', KEYS[3], 0, room - 1)) do
      redis.call('ZREM', KEYS[3], unit)
      redis.call('ZADD', KEYS[4], 0, me .. ' ' .. unit)
      redis.call('HSET', KEYS[5], unit, me)
      reply[#reply + 1] = unit
      held = held + 1
    end
  end
end
reply[3] = held
reply[4] = redis.call('ZCARD', KEYS[3])
return reply
