-- dryrun.lua: a dry run of reserve.lua holds and charges nothing. The shop has answered
-- already: what it sold is noted in counters of their own, and is gone for later dry runs, as if
-- the gate had sold it. It comes before reserve.lua, which runs it where it has a KEYS[19].
--
-- A counter is a field of KEYS[19]:
--   s|cell   units that the shop sold, and the gate would have sold
--   p|cell   units that the shop sold past the gate, which would have refused them
--   sold, past  the sums of both
--   l|field  what the former have charged of a limit
--   o|key, o|ref  an order that the shop sold, by its idempotency key and by its ref → 1
--
-- Returns { 'bound', 'shadow' } for an order that is noted already; else what reserve.lua returns.
--
-- Of an attempt, id is empty, guard is its idempotency key or empty, and rest is
--   0     the shop did not sell it
--   1     the shop sold it
--   past  the shop sold it, and the edge itself would have refused it
--
-- uses shard.lua: AVAILABLE, call, cells, int, match, shard

local SHADOW_KEY = 19

local counts, added, orders = {}, {}, {}
local at -- behind which places of ARGV the columns are
local charges -- charged of reserve.lua

local function read_counts(list)
  for i = 1, #list, 1000 do
    local last = math.min(i + 999, #list)
    for j, n in ipairs(call('HMGET', KEYS[SHADOW_KEY], unpack(list, i, last))) do counts[list[i + j - 1]] = tonumber(n or '0') end
  end
end

-- orders_of returns the fields that know the i-th attempt's order
local function orders_of(i)
  local fields, guard, ref = {}, ARGV[at.guards + i], at.refs and ARGV[at.refs + i] or ''
  if guard ~= '' then fields[1] = 'o|' .. guard end
  if ref ~= '' then
    local buyer = string.sub(ref, 1, 1) == 'b' and ARGV[at.buyers + i] or ''
    fields[#fields + 1] = 'o|' .. buyer .. '|' .. ref
  end
  return fields
end

local function begin(names, charged, pending, counted, n, places)
  at, charges = places, charged
  local list = {}
  for i = 1, #names do list[i] = 's|' .. names[i] end
  for i = at.fields + 1, at.owed do list[#list + 1] = 'l|' .. ARGV[i] end
  for i = 1, n do
    for _, field in ipairs(orders_of(i)) do list[#list + 1] = field end
  end
  read_counts(list)
  for _, name in ipairs(names) do
    if cells[name] then cells[name][AVAILABLE] = cells[name][AVAILABLE] - counts['s|' .. name] end
  end
  for i = at.fields + 1, at.owed do
    local field = ARGV[i]
    local c, p = match(counted[i - at.fields] or '', '^(%d+) (%d+)')
    charged[field], pending[field] = (tonumber(c) or 0) + counts['l|' .. field], tonumber(p) or 0
  end
end

local function add(field, n) added[field] = (added[field] or 0) + n end

-- sell notes what the shop sold; past: the gate would have refused it
local function sell(i, profile, past)
  for j = 1, #profile.cells do
    local c, units = cells[profile.cells[j]], profile.units[j]
    if c then
      add((past and 'p|' or 's|') .. profile.cells[j], units)
      add(past and 'past' or 'sold', units)
      if not past then c[AVAILABLE] = c[AVAILABLE] - units end
    end
  end
  for _, field in ipairs(orders_of(i)) do
    counts[field], orders[#orders + 1] = 1, field
  end
end

-- known answers an attempt about which nothing is to be decided
local function known(i, profile)
  for _, field in ipairs(orders_of(i)) do
    if counts[field] > 0 then return { 'bound', 'shadow' } end
  end
  if ARGV[at.rests + i] ~= 'past' or not shard.exists then return nil end
  if profile.refusal and profile.refusal[1] == 'version' then return profile.refusal end
  sell(i, profile, true)
  return profile.answer
end

-- what may be asked again is not an answer to the attempt
local again = { version = true, window = true, late = true, no_sale = true, bound = true }

-- decide notes what became of an attempt, and returns its refusal. Its limits are behind
-- a place of ARGV.
local function decide(i, profile, behind, refusal)
  if ARGV[at.rests + i] == '0' or refusal and again[refusal[1]] then return refusal end
  sell(i, profile, refusal)
  if refusal then return refusal end
  for j = 1, #profile.amounts do
    local field = ARGV[behind + j]
    add('l|' .. field, profile.amounts[j])
    charges[field] = charges[field] + profile.amounts[j]
  end
  return nil
end

local function write()
  for field, n in pairs(added) do call('HINCRBY', KEYS[SHADOW_KEY], field, int(n)) end
  for _, field in ipairs(orders) do call('HSET', KEYS[SHADOW_KEY], field, 1) end
end

local dry_run = { begin = begin, known = known, decide = decide, write = write }
