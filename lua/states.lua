-- states.lua: how a reservation gets from one state into another: its units move,
-- it is listed where it belongs, what it charged, what it binds and the counters of
-- unpaid holds follow. It comes after bindings.lua and unpaid.lua in every script.
--
-- uses asked.lua: sure_time
-- uses bindings.lua: bind, bind_again, is_key, list_under, note_end, ref_field, taken, unbind, unlist_under
-- uses changes.lua: BUYER, CAUSE, CHANGED, CHARGED, CHARGES, COUNTED, CREATED, DEADLINE, EXP, FIELDS, GUARD, LINES, MODE, PENDING, PRINT, PROBES, REF, RETURNED, STATE, UNPAID, changed, dirty, move, pairs_of, parse_limit, plain, read_cell, read_limit, read_record, read_wanted, text_of, want, want_cell, wanted_bindings, wanted_cells, wanted_limits, wanted_records, wanted_unpaid, write_journal, write_limit, write_record, zadd, zrem
-- uses queue.lua: leave_queue
-- uses shard.lua: AVAILABLE, BINDINGS_KEY, CELLS_KEY, CONFIRMED, HELD, IN_DOUBT, LIMITS_KEY, RECORDS_KEY, UNPAID_KEY, bindings, call, cells, limits, match, parse_cell, records, shard, time
-- uses unpaid.lua: parse_unpaid
-- uses waitlist.lua: waitlist

-- counters of unpaid holds, by their fields
local unpaid = {}

local function read_unpaid(field)
  local c = unpaid[field]
  if not c then
    c = parse_unpaid(call('HGET', KEYS[UNPAID_KEY], field))
    unpaid[field] = c
  end
  return c
end

-- add_time adds the time of now, behind those that are not later
local function add_time(c)
  local i = #c
  while i > 0 and c[i] > shard.now do i = i - 1 end
  table.insert(c, i + 1, shard.now)
end

-- take_back drops the newest time that is not later than another one: a hold that ended
-- unpaid or in doubt did so when it last changed, or before it was released
local function take_back(c, at)
  for i = #c, 1, -1 do
    if c[i] <= at then
      table.remove(c, i)
      return
    end
  end
end

-- count_unpaid follows a reservation from its state into another one: what is held counts
-- until it ends, what ends unpaid or in doubt from then on, and nothing of it once it is sold
local function count_unpaid(r, state)
  local from, sold = r[STATE], state == 'confirmed' or state == 'unbacked'
  local comes_back = sold and (from == 'in_doubt' or from == 'expired' or from == 'released')
  if r[UNPAID] == '' or from ~= 'held' and not comes_back then return end
  for field in string.gmatch(r[UNPAID], '%S+') do
    local c = read_unpaid(field)
    if comes_back then
      take_back(c, r[CHANGED])
    else
      c.held = math.max(c.held - 1, 0)
      if state == 'expired' or state == 'in_doubt' then add_time(c) end
    end
    changed.unpaid[field] = true
  end
end

-- hold_unpaid counts a held hold
local function hold_unpaid(r)
  for field in string.gmatch(r[UNPAID], '%S+') do
    local c = read_unpaid(field)
    c.held = c.held + 1
    changed.unpaid[field] = true
  end
end

-- swapped is the cause of a hold that was released because another one took its place, see
-- swap.lua
local swapped = 'swapped for another cart'

-- where the units of each state are; State.Column of package reservation is the same in Go
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

-- margin_of is how long before the end of a held hold its token expires. Deadline and changed
-- are by the shard's clock, exp and created by Redis's own time.
local function margin_of(r) return (r[DEADLINE] - r[EXP]) - (r[CHANGED] - r[CREATED]) end

-- put_off gives a held hold a later deadline, and what its token tells then
local function put_off(id, r, deadline, exp, cause)
  r[DEADLINE], r[EXP], r[CREATED] = deadline, exp, r[CHANGED] - shard.lead
  index(id, 'held', deadline)
  write_record(id, r)
  write_journal('extended', id, 'held', '', r[BUYER], cause, text_of(id))
end

-- too_soon says for how many ms yet only the shop's word releases a hold: until its deadline,
-- and as long as its token is good. 0: no longer.
local function too_soon(r)
  if r[MODE] == 'queued' or r[MODE] == 'offer' then return 0 end -- the shop does not have it
  return math.max(r[DEADLINE] - shard.now, r[EXP] - (sure_time > 0 and sure_time or time), 0)
end

-- stands_as is the state of a reservation as a conflict tells it
local function stands_as(r) return r[MODE] == 'offer' and r[STATE] == 'held' and 'offered' or r[STATE] end


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
    unbind(id, ref_field(r))
    unlist_under(r[REF], id)
  elseif r[STATE] == 'held' or r[STATE] == 'in_doubt' then
    if state == 'confirmed' and not is_key(r[GUARD]) then unbind(id, r[GUARD]) end
  else
    bind_again(id, r, state)
    comes_back = true
  end
  note_end(id, r, was, state, cause)
  if was == 'held' and shard.queue then leave_queue(id) end
  if r[MODE] == 'offer' and was == 'held' and waitlist then waitlist.ended(id, cause) end
  unindex(id, r[STATE])
  count_unpaid(r, state)
  r[STATE], r[CHANGED], r[CAUSE] = state, shard.now, plain(cause)
  index(id, state, shard.now)
  write_record(id, r)
  write_journal(state, id, was, r[LINES], r[BUYER], cause, comes_back and text_of(id) or '')
end

-- give_back undoes exactly what the reservation charged, where the counter still exists
local function give_back(r, pending)
  for _, charge in ipairs(pairs_of(r[CHARGES])) do
    local l = read_limit(charge[1])
    if l[COUNTED] then write_limit(charge[1], l[CHARGED] - charge[2], l[PENDING] - (pending and charge[2] or 0)) end
  end
end

-- settle_charges turns what is pending into what is spent
local function settle_charges(charges)
  for _, charge in ipairs(pairs_of(charges)) do
    local l = read_limit(charge[1])
    if l[COUNTED] then write_limit(charge[1], l[CHARGED], l[PENDING] - charge[2]) end
  end
end

-- earlier_of returns the hold whose place a hold took, and its id, if the shop may still sell with
-- its token; nil: there is none
local function earlier_of(r)
  local old_id = not is_key(r[GUARD]) and match(r[PRINT], '^%+(.+)$')
  local old = old_id and read_record(old_id)
  if not old or old[STATE] ~= 'released' or old[CAUSE] ~= swapped or too_soon(old) == 0 then return nil end
  return old, old_id
end

-- all_available reports whether every line can be had now
local function all_available(lines)
  local asked = {}
  for _, line in ipairs(lines) do
    local c = read_cell(line[1])
    asked[line[1]] = (asked[line[1]] or 0) + line[2]
    if not c or c[AVAILABLE] < asked[line[1]] then return false end
  end
  return true
end

-- of confirm.lua: the ids that a call confirms; and a function that notes what to read for such a
-- hold, and reports whether that is all
local confirming, read_hold = {}, nil

-- want_stock notes that the units and the limits of a reservation will be read
local function want_stock(lines, charges)
  for _, line in ipairs(pairs_of(lines)) do want_cell(line[1]) end
  for _, charge in ipairs(pairs_of(charges)) do
    if limits[charge[1]] == nil then want(wanted_limits, charge[1]) end
  end
end

-- read_ahead reads in bulk what is wanted, and for each reservation that was read what will
-- end or go on with it: its units, its limits, and what it may free
local function read_ahead()
  read_wanted(wanted_records, KEYS[RECORDS_KEY], records)
  for id, r in pairs(records) do
    if r and not (confirming[id] and read_hold and read_hold(id, r)) then
      r = read_record(id)
      want_stock(r[LINES], r[CHARGES])
      for field in string.gmatch(r[UNPAID], '%S+') do
        if unpaid[field] == nil then want(wanted_unpaid, field) end
      end
      local frees = asked.release or asked.expire and r[MODE] == 'backend'
      local guard = r[GUARD]
      if guard ~= '' and (frees or not is_key(guard)) and bindings[guard] == nil then want(wanted_bindings, guard) end
      if r[REF] ~= '' and frees then
        for _, field in ipairs({ ref_field(r), 'r|' .. r[REF], 'm|' .. r[REF] }) do
          if bindings[field] == nil then want(wanted_bindings, field) end
        end
      end
    end
  end
  read_wanted(wanted_bindings, KEYS[BINDINGS_KEY], bindings)
  read_wanted(wanted_limits, KEYS[LIMITS_KEY], limits, parse_limit)
  read_wanted(wanted_unpaid, KEYS[UNPAID_KEY], unpaid, parse_unpaid)
  read_wanted(wanted_cells, KEYS[CELLS_KEY], cells, parse_cell)
end

-- margin_again is the margin of a hold that was swapped, whose record does not tell any more how far
-- the shard's clock led when it was made. The present lead tells where it has not changed: where the
-- margin is not below 0, and not beyond that of the hold in its place, which is its own or more. most:
-- that; nil: it is not known.
local function margin_again(old, most)
  local margin = old[DEADLINE] - old[EXP] - shard.lead
  if most and (margin < 0 or margin > most) then margin = most end
  return math.max(margin, 0)
end

-- hold_again holds for the token of a hold that was swapped, as long as that is good: a hold of its
-- own, under the same ref, that charges the same. Nothing if its units are not there.
local function hold_again(id, old, most_margin)
  if not all_available(pairs_of(old[LINES])) then return end
  local r = {}
  for i = 1, FIELDS do r[i] = old[i] end
  local led = r[DEADLINE] - r[EXP] - margin_again(old, most_margin) -- see margin_of
  r[STATE], r[CREATED], r[CHANGED], r[CAUSE], r[GUARD], r[RETURNED], r[PROBES] = 'held', shard.now - led, shard.now, swapped, '', '', ''
  for _, line in ipairs(pairs_of(r[LINES])) do move(line[1], line[2], AVAILABLE, HELD) end
  for _, charge in ipairs(pairs_of(r[CHARGES])) do
    local l = read_limit(charge[1])
    write_limit(charge[1], l[CHARGED] + charge[2], l[PENDING] + charge[2])
  end
  hold_unpaid(r)
  write_record(id, r)
  index(id, 'held', r[DEADLINE])
  if not taken(ref_field(r), 'held') then bind(ref_field(r), id) end
  list_under(r[REF], id)
  write_journal('held', id, '', r[LINES], r[BUYER], swapped, text_of(id))
end
