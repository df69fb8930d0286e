-- instead.lua: a hold is made in the place of another one, which gives back what it has in the same step, or of
-- none. It comes after verdicts.lua.
--
-- Returns what verdicts.lua does, and
--         { 'window', now } { 'limit', i } { 'pending', i } { 'unpaid', wait }
--         { 'unknown', i } { 'sold_out', i, available, left, seq } { 'all_held', i, available, left, seq }
--         { 'not_your_turn', i }  people wait for the i-th item, see waitlist.lua
--
-- uses asked.lua: sure_time
-- uses changes.lua: BUYER, CHARGED, CHARGES, COUNTED, DEADLINE, LINES, MODE, PENDING, STATE, UNPAID, changed, complete, move, pairs_of, parse_record, read_cell, read_limit, read_record, text_of, write_journal, write_limit, write_record
-- uses shard.lua: AVAILABLE, HELD, SCHEMA_OF_UNPAID, TOLERANCE, find, int, shard, time
-- uses states.lua: change_state, give_back, index, read_unpaid
-- uses unpaid.lua: counting, prune
-- uses verdicts.lua: limits_verdict, stock_verdict, unpaid_verdict
-- uses waitlist.lua: waitlist

-- units_in sums lines by their cells
local function units_in(lines)
  local units = {}
  for _, line in ipairs(lines) do units[line[1]] = (units[line[1]] or 0) + line[2] end
  return units
end

-- turn_verdict refuses units for which people wait, beyond those that a hold has already, whether they are free or
-- not. A promise of before a fence is told again. refusal: the verdict so far.
local function turn_verdict(refusal, profile, back)
  if not shard.waitlist or profile.version == 'told' or refusal and refusal[1] ~= 'all_held' then return refusal end
  for i, name in ipairs(profile.cells) do
    if profile.units[i] > (back[name] or 0) and waitlist.counts(name) > 0 then return { 'not_your_turn', i } end
  end
  return refusal
end

-- offer_to returns the offer of some cells that a person has; of two entries under the person's identities the
-- first one's
local function offer_to(buyer, identities, wanted)
  if not waitlist then return end
  for _, number in ipairs(waitlist.numbers(buyer, identities)) do
    local e = waitlist.entry(number)
    local id = e and wanted[e.cell] and waitlist.id_of(e)
    local r = id and read_record(id)
    if r and r[STATE] == 'held' and r[MODE] == 'offer' then return id, r end
  end
end

-- take_offer ends an offer whose units are of an order now
local function take_offer(id, r)
  give_back(r, true)
  change_state(id, r, 'released', 'accepted')
end

-- none is a hold that has nothing to give back
local none = complete({})

-- verdict_without judges what is asked once a hold has given everything back that it has and charges. The
-- limits are behind a place of the arguments, and the counters of unpaid holds behind them.
local function verdict_without(old, back, profile, a, behind)
  local charges, counters = units_in(pairs_of(old[CHARGES])), ' ' .. old[UNPAID] .. ' '
  local function limit_at(place)
    local field = a[place]
    local l = read_limit(field)
    local own = l[COUNTED] and charges[field] or 0
    return field, l[CHARGED] - own, l[PENDING] - own
  end
  local function unpaid_at(place, after, n)
    local field = a[place]
    local c = read_unpaid(field)
    local _, nth = counting(c, after, n)
    return c.held - (find(counters, ' ' .. field .. ' ', 1, true) and 1 or 0), nth
  end
  for _, name in ipairs(profile.cells) do read_cell(name) end
  local refusal = limits_verdict(profile, behind, limit_at) -- one in shadow is not told of
  return refusal or unpaid_verdict(profile, behind + #profile.amounts, unpaid_at) or stock_verdict(profile, shard.seq, back)
end

-- hold begins a hold: its units leave what is available
local function hold(id, r, cause)
  for _, line in ipairs(pairs_of(r[LINES])) do
    read_cell(line[1])
    move(line[1], line[2], AVAILABLE, HELD)
  end
  write_record(id, r)
  index(id, 'held', r[DEADLINE])
  write_journal('held', id, '', r[LINES], r[BUYER], cause, text_of(id))
end

-- charge counts what a hold costs of its limits, and it among the unpaid ones
local function charge(profile, a, behind)
  for i, amount in ipairs(profile.amounts) do
    local l = read_limit(a[behind + i])
    write_limit(a[behind + i], l[CHARGED] + amount, l[PENDING] + amount)
  end
  for i = 1, profile.owed do
    local field = a[behind + #profile.amounts + i]
    local c = read_unpaid(field)
    c.held = c.held + 1
    prune(c, shard.now - profile.within)
    changed.unpaid[field] = true
  end
  if profile.owed > 0 and shard.schema < SCHEMA_OF_UNPAID then changed.meta.schema = int(SCHEMA_OF_UNPAID) end
end

-- own_time is Redis's own time. A step of it that the caller knows of gets into no times of a hold.
local function own_time() return sure_time > 0 and time > sure_time and sure_time - TOLERANCE or time end

-- begun is the record of a hold that begins now, at own by Redis's time
local function begun(profile, due, exp, own, buyer, rest)
  return parse_record('held\t' .. int(due) .. '\t' .. int(exp) .. '\t' .. int(own) .. '\t' .. int(shard.now) .. '\t' .. profile.mode .. '\t' .. buyer .. rest)
end
