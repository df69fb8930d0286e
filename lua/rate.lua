-- rate.lua: may these attempts come now? Each counts for all of its rates, or, if
-- one of them is over, for none.
--
-- The generic cell rate algorithm in its form as a leaky bucket (ITU-T I.371,
-- annex A), in integers: a bucket holds `events` units for each ms that it takes
-- to run empty, an attempt pours `window` units, and what would rise above
-- `burst * window` has to wait. So nothing is ever rounded but Redis's clock, to ms.
--
-- KEYS[…]  three for each rate of each attempt, in the order of ARGV:
--          bucket    string  "level time": units at that ms; none: empty
--          coarse    string  the bucket of a key for which there is no room: many share it
--          count     string  "generation now before": how many buckets of the rate were
--                            written in that generation, and in the one before
-- ARGV[…]  attempts  for each: n, number of rates, then for each:
--                    events, window (ms), burst, keys; burst * window is below 1e14
--
-- Returns { time, reply, … }: Redis's own time in ms, then for each attempt
--         { 'ok' } or { 'over', i, wait }: its i-th rate has to wait longest, so many ms
--
-- A bucket is kept while there is anything in it; an empty one says what none says.
--
-- A generation is as long as a bucket can be kept. So a bucket that is there was written in
-- this generation or in the one before, and there are no more than both counts. Where they
-- reach `keys`, a key that has no bucket takes the coarse one: its rate gets stricter, and
-- never are there more than `keys` buckets beside the coarse ones.

-- ms beyond that, because keys end by another reading of the clock
local GRACE = 1000

local now = redis.call('TIME')
now = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)

local levels, changed = {}, {} -- of buckets by key: units; ms until empty, of those to be written
local written = {} -- of buckets by key: when they were written last; false: they are not there
local counts = {} -- by key

local function level(key, events)
  if levels[key] then return levels[key] end
  local stored = redis.call('GET', key)
  local units = 0
  written[key] = false
  if stored then
    local was, at = string.match(stored, '^(%d+) (%d+)$')
    was, at = math.min(tonumber(was) or 0, 1e14), tonumber(at) or 0 -- more was not written here
    written[key] = at
    units = math.max(0, was - math.max(0, now - at) * events)
    if at > now then
      -- the clock was set back: time goes on from here, and is not waited for
      changed[key] = math.ceil(units / events)
    end
  end
  levels[key] = units
  return units
end

-- count_of reads how many buckets of a rate were written, and begins a new generation
local function count_of(key, rate)
  local c = counts[key]
  if c then return c end
  c = { kept = math.ceil(rate.burst * rate.window / rate.events) + GRACE }
  c.generation = math.floor(now / c.kept)
  local generation, current, before = string.match(redis.call('GET', key) or '', '^(%d+) (%d+) (%d+)$')
  generation = tonumber(generation) or -1
  c.current, c.before = 0, 0
  if generation == c.generation then
    c.current, c.before = tonumber(current), tonumber(before)
  elseif generation == c.generation - 1 then
    c.before = tonumber(current)
  elseif generation > c.generation then -- the clock was set back; one key goes on from here
    c.before = math.min(tonumber(current) + tonumber(before), rate.keys - 1)
  end
  counts[key] = c
  return c
end

-- find_bucket returns the bucket of a rate's key, or the coarse one
local function find_bucket(rate, bucket, coarse)
  level(bucket, rate.events)
  if written[bucket] then return bucket end
  local c = count_of(rate.count, rate)
  return c.current + c.before < rate.keys and bucket or coarse
end

-- note counts a bucket that is about to be written for the first time in this generation
local function note(rate)
  if rate.key == rate.coarse then return end
  local c, at = count_of(rate.count, rate), written[rate.key]
  if at and math.floor(at / c.kept) == c.generation then return end
  written[rate.key] = c.generation * c.kept
  c.current = c.current + 1
  c.changed = true
end

local out = { now }
local k, a = 1, 1
while ARGV[a] do
  local n = tonumber(ARGV[a])
  local rates, reply = {}, { 'ok' }
  for i = 1, n do
    local rate = {
      coarse = KEYS[k + 1], count = KEYS[k + 2],
      events = tonumber(ARGV[a + 1]), window = tonumber(ARGV[a + 2]), burst = tonumber(ARGV[a + 3]), keys = tonumber(ARGV[a + 4]),
    }
    rate.key = find_bucket(rate, KEYS[k], rate.coarse)
    rates[i] = rate
    local above = level(rate.key, rate.events) + rate.window - rate.burst * rate.window
    if above > 0 then
      local wait = math.ceil(above / rate.events)
      if not reply[3] or wait > reply[3] then reply = { 'over', i, wait } end
    end
    k, a = k + 3, a + 4
  end
  a = a + 1
  if not reply[3] then
    for _, rate in ipairs(rates) do
      levels[rate.key] = levels[rate.key] + rate.window
      changed[rate.key] = math.ceil(levels[rate.key] / rate.events)
      note(rate)
    end
  end
  out[#out + 1] = reply
end

for key, c in pairs(counts) do
  if c.changed then
    redis.call('SET', key, string.format('%.0f %.0f %.0f', c.generation, c.current, c.before), 'PX', string.format('%.0f', 2 * c.kept))
  end
end
for key, empty_in in pairs(changed) do
  redis.call('SET', key, string.format('%.0f %.0f', levels[key], now), 'PX', string.format('%.0f', empty_in + GRACE))
end
return out
