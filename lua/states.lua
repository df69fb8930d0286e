-- states.lua: how a reservation gets from one state into another: its units move,
-- it is listed where it belongs, what it charged and what it binds follow. It
-- comes after bindings.lua in every script.

local columns = { held = HELD, in_doubt = IN_DOUBT, confirmed = CONFIRMED, released = AVAILABLE, expired = AVAILABLE, unbacked = AVAILABLE }

local function index(id, state, at)
  if state == 'held' then zadd.deadlines[id] = at
  elseif state == 'in_doubt' then zadd.in_doubt[id] = at
  elseif state == 'unbacked' then zadd.unbacked[id] = at
  elseif state == 'tombstone' then zadd.tombstones[id] = at end
end

local function unindex(id, state)
  local name = state == 'held' and 'deadlines' or state == 'tombstone' and 'tombstones' or state
  if zrem[name] then
    zrem[name][id] = true
    zadd[name][id] = nil
    dirty = true
  end
end

-- a reservation leaves its state: its units move, its record says why and when
local function change_state(id, r, state, cause)
  local from, to = columns[r[STATE]], columns[state]
  if from ~= to then
    for _, line in ipairs(pairs_of(r[LINES])) do
      read_cell(line[1])
      move(line[1], line[2], from, to)
    end
  end
  local was, comes_back = r[STATE], false
  if state == 'released' or state == 'expired' then
    unbind(id, r[GUARD])
    unbind(id, ref_field(r[REF]))
  elseif r[STATE] == 'held' or r[STATE] == 'in_doubt' then
    if state == 'confirmed' and not is_key(r[GUARD]) then unbind(id, r[GUARD]) end
  else
    bind_again(id, r, state)
    comes_back = true
  end
  unindex(id, r[STATE])
  r[STATE], r[CHANGED], r[CAUSE] = state, shard.now, plain(cause)
  index(id, state, shard.now)
  write_record(id, r)
  write_journal(state, id, was, r[LINES], r[BUYER], cause, comes_back and text_of(id) or '')
end

-- give_back undoes exactly what the reservation charged, where the counter still exists
local function give_back(r, pending)
  for _, charge in ipairs(pairs_of(r[CHARGES])) do
    local l = read_limit(charge[1])
    if l[3] then write_limit(charge[1], l[1] - charge[2], l[2] - (pending and charge[2] or 0)) end
  end
end

-- settle_charges turns what is pending into what is spent
local function settle_charges(r)
  for _, charge in ipairs(pairs_of(r[CHARGES])) do
    local l = read_limit(charge[1])
    if l[3] then write_limit(charge[1], l[1], l[2] - charge[2]) end
  end
end

-- all_available says whether every line can be had now
local function all_available(lines)
  local asked = {}
  for _, line in ipairs(lines) do
    local c = read_cell(line[1])
    asked[line[1]] = (asked[line[1]] or 0) + line[2]
    if not c or c[AVAILABLE] < asked[line[1]] then return false end
  end
  return true
end
