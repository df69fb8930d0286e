-- rate.lua: may these attempts come now? Each counts for all of its rates, or, if
-- one of them is over, for none.
--
-- The generic cell rate algorithm in its form as a leaky bucket (ITU-T I.371,
-- annex A), in integers: a bucket holds `events` units for each ms that it takes
-- to run empty, an attempt pours `window` units, and what would rise above
-- `burst * window` has to wait. So nothing is ever rounded but Redis's clock, to ms.
--
-- KEYS[…]  bucket    string  "level time": units at that ms; none: empty. One for each
--                            rate of each attempt, in the order of ARGV
-- ARGV[…]  attempts  for each: n, number of rates, then for each:
--                    events, window (ms), burst; burst * window is below 1e14
--
-- Returns { time, reply, … }: Redis's own time in ms, then for each attempt
--         { 'ok' } or { 'over', i, wait }: its i-th rate has to wait longest, so many ms
--
-- A bucket is kept while there is anything in it; an empty one says what none says.

local GRACE = 1000 -- ms beyond that, because keys end by another reading of the clock

local now = redis.call('TIME')
now = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)

local levels, changed = {}, {} -- of buckets by key: units; ms until empty, of those to be written

local function level(key, events)
  if levels[key] then return levels[key] end
  local stored = redis.call('GET', key)
  local units = 0
  if stored then
    local was, at = string.match(stored, '^(%d+) (%d+)$')
    was, at = tonumber(was or '0'), tonumber(at or '0')
    units = math.max(0, was - math.max(0, now - at) * events)
    if at > now then
      -- the clock was set back: time goes on from here, and is not waited for
      changed[key] = math.ceil(units / events)
    end
  end
  levels[key] = units
  return units
end

local out = { now }
local k, a = 1, 1
while ARGV[a] do
  local n = tonumber(ARGV[a])
  local rates, reply = {}, { 'ok' }
  for i = 1, n do
    local rate = {
      key = KEYS[k], events = tonumber(ARGV[a + 1]), window = tonumber(ARGV[a + 2]), burst = tonumber(ARGV[a + 3]),
    }
    rates[i] = rate
    local above = level(rate.key, rate.events) + rate.window - rate.burst * rate.window
    if above > 0 then
      local wait = math.ceil(above / rate.events)
      if not reply[3] or wait > reply[3] then reply = { 'over', i, wait } end
    end
    k, a = k + 1, a + 3
  end
  a = a + 1
  if not reply[3] then
    for _, rate in ipairs(rates) do
      levels[rate.key] = levels[rate.key] + rate.window
      changed[rate.key] = math.ceil(levels[rate.key] / rate.events)
    end
  end
  out[#out + 1] = reply
end

for key, empty_in in pairs(changed) do
  redis.call('SET', key, string.format('%.0f %.0f', levels[key], now), 'PX', string.format('%.0f', empty_in + GRACE))
end
return out
