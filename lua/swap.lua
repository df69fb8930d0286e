-- swap.lua: the buyer of an order that is held has changed its cart. In one step the hold is
-- released and another one made for the new lines, which ends when it would; a refusal leaves it as
-- it is. The shop may still sell with the old token, so what the new lines lack stays held until
-- that has expired, and a confirm of the old hold undoes the swap, see confirm.lua.
--
-- a[1]  old        id of the hold
-- a[2]  id         id of the new one; the same id again returns the same answer
-- a[3]  not_after  ms by Redis's own time; a later run is refused
-- a[4]  profile    as in reserve.lua
-- a[5]  guard      as in reserve.lua, not of an idempotency key
-- a[6]  ref        the shop's own name of the order, that of the old hold
-- a[7]  buyer      hash of the buyer, that of the old hold
-- a[8]  rest       of the record, as in reserve.lua
-- a[9]  n          number of limits, then the field of each; then the counters of unpaid holds
--
-- Returns { 'ok', state, deadline, exp, epoch, created } { 'gone' }, as reserve.lua
--         { 'no_sale' } { 'late' } { 'version', version } { 'not_started', starts, now } { 'paused' } { 'ended' }
--         { 'closed' } { 'window', now } { 'limit', i } { 'pending', i } { 'unpaid', wait } { 'unknown', i }
--         { 'sold_out', i, available, left, seq } { 'all_held', i, available, left, seq }
--         { 'conflict', state }  the old one is not held any more, not with outcome backend, not by
--                                this buyer and ref, under an idempotency key, or is about to end
--         { 'at_shop' }          a request of it, or the same one, is still being answered
--         { 'not_found' } { 'restoring' }

function reads.swap(a)
  want(wanted_records, a[1])
  want(wanted_records, a[2])
end

-- units_in sums lines by their cells
local function units_in(lines)
  local units = {}
  for _, line in ipairs(lines) do units[line[1]] = (units[line[1]] or 0) + line[2] end
  return units
end

-- limit_refusal is that of limits_verdict in reserve.lua, once the old hold has given back
-- what it charged
local function limit_refusal(limits_of, old)
  local had, asked = units_in(pairs_of(old[CHARGES])), {}
  for i, limit in ipairs(limits_of) do
    if time < limit.from or time >= limit.to then return { 'window', time } end
    local l = read_limit(limit.field)
    local back = l[3] and had[limit.field] or 0
    asked[limit.field] = (asked[limit.field] or 0) + limit.amount
    local charged, pending = l[1] - back + asked[limit.field], l[2] - back
    if limit.most >= 0 and charged > limit.most then
      return charged - pending > limit.most and { 'limit', i } or { 'pending', i }
    end
  end
end

-- unpaid_refusal is that of unpaid_verdict in reserve.lua, without the old hold
local function unpaid_refusal(fields, bounds, old)
  local wait
  for _, field in ipairs(fields) do
    local c = read_unpaid(field)
    local own = find(' ' .. old[UNPAID] .. ' ', ' ' .. field .. ' ', 1, true) and 1 or 0
    local _, oldest = counting(c, shard.now - bounds.within, bounds.ended)
    if oldest then
      wait = math.max(wait or 0, oldest + bounds.within - shard.now)
    elseif c.held - own >= bounds.at_once then
      wait = wait or 0
    end
  end
  return wait and { 'unpaid', wait }
end

-- stock_refusal is that of stock_verdict in reserve.lua, once the old hold's units are back
local function stock_refusal(lines, old)
  local back, asked, all_held = units_in(pairs_of(old[LINES])), {}, nil
  for i, line in ipairs(lines) do
    local c = read_cell(line[1])
    if not c then return { 'unknown', i } end
    asked[line[1]] = (asked[line[1]] or 0) + line[2]
    if c[AVAILABLE] + (back[line[1]] or 0) < asked[line[1]] then
      local left = c[AVAILABLE] + c[HELD] + c[IN_DOUBT]
      if left < asked[line[1]] then return { 'sold_out', i, c[AVAILABLE], left, shard.seq } end
      all_held = all_held or { 'all_held', i, c[AVAILABLE], left, shard.seq }
    end
  end
  return all_held
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

function operations.swap(a)
  local old_id, id, guard, ref, buyer = a[1], a[2], a[5], a[6], a[7]
  local known = read_record(id)
  if known and known[STATE] == 'tombstone' then return { 'gone' } end
  if known then return { 'ok', known[STATE] == 'held' and known[MODE] == 'queued' and 'waiting' or known[STATE], known[DEADLINE] - shard.lead, known[EXP], shard.epoch, known[CREATED] } end
  if not shard.exists then return { 'no_sale' } end
  local old = read_record(old_id)
  if not old or old[STATE] == 'tombstone' then return not_found() end
  if old[STATE] ~= 'held' or old[MODE] ~= 'backend' or ref == '' or old[REF] ~= ref or old[BUYER] ~= buyer or is_key(old[GUARD]) then
    return { 'conflict', old[STATE] }
  end
  if old[GUARD] ~= '' and read_binding(old[GUARD]) == old_id or bound_to(guard) then return { 'at_shop' } end
  local owner = bound_by_ref(ref, false, buyer)
  if owner ~= old_id then return { 'conflict', owner and read_record(owner)[STATE] or old[STATE] } end
  for _, other_id in ipairs(named_by(ref)) do
    local other = other_id ~= old_id and live_under(other_id, ref)
    if other and other[BUYER] == buyer then return { 'conflict', other[STATE] } end
  end
  local w = split(a[4], '%S+')
  local margin, last = tonumber(w[3]), 6 + 2 * tonumber(w[6])
  -- another cart does not lengthen the hold: clients would keep units for ever
  -- and what both tokens name stays held as long as the old one is good
  local due = old[DEADLINE]
  local ends = time + due - shard.now
  local exp = math.min(ends, time + tonumber(w[2])) - margin
  if exp <= time then return { 'conflict', 'held' } end
  if time > tonumber(a[3]) then return { 'late' } end
  local refusal
  if w[1] ~= 'told' then
    if tonumber(w[1]) ~= shard.version then return { 'version', shard.version } end
    refusal = closed_answer()
    if refusal then return refusal end
  end
  local lines, limits_of, fields = {}, {}, {}
  for i = 7, last, 2 do lines[#lines + 1] = { w[i], tonumber(w[i + 1]) } end
  for i = 1, tonumber(a[9]) do
    local at = last + 4 * i - 3
    limits_of[i] = { field = a[9 + i], amount = tonumber(w[at]), most = tonumber(w[at + 1]), from = tonumber(w[at + 2]), to = tonumber(w[at + 3]) }
  end
  for i = 10 + #limits_of, #a do fields[#fields + 1] = a[i] end
  local bounds = {}
  if w[5] ~= '0' then
    local _, at_once, ended, within = match(w[5], '^(%d+):(%d+):(%d+):(%d+)$')
    bounds = { at_once = tonumber(at_once), ended = tonumber(ended), within = tonumber(within) }
  end
  refusal = limit_refusal(limits_of, old) or unpaid_refusal(fields, bounds, old) or stock_refusal(lines, old)
  if refusal then return refusal end

  local rest = {}
  local needed = units_in(lines)
  for cell, units in pairs(units_in(pairs_of(old[LINES]))) do
    if units > (needed[cell] or 0) then rest[#rest + 1] = cell .. ' ' .. int(units - (needed[cell] or 0)) end
  end
  table.sort(rest)
  local old_exp, led = old[EXP], old[CHANGED] - old[CREATED]
  give_back(old, true)
  change_state(old_id, old, 'released', swapped)
  if rest[1] then
    hold(old_id .. '+', complete({ 'held', due, old_exp, shard.now - led, shard.now, 'backend', buyer, concat(rest, ' '), '', swapped, shard.version }), swapped)
  end
  for _, limit in ipairs(limits_of) do
    local l = read_limit(limit.field)
    write_limit(limit.field, l[1] + limit.amount, l[2] + limit.amount)
  end
  for _, field in ipairs(fields) do
    local c = read_unpaid(field)
    c.held = c.held + 1
    prune(c, shard.now - bounds.within)
    changed.unpaid[field] = true
  end
  if fields[1] and shard.schema < tonumber(ARGV[3]) then changed.meta.schema = ARGV[3] end
  local r = parse_record('held\t' .. int(due) .. '\t' .. int(exp) .. '\t' .. int(time) .. '\t' .. int(shard.now) .. '\t' ..
    w[4] .. '\t' .. buyer .. a[8])
  r[PRINT] = '+' .. old_id
  bind(guard, id)
  bind(buyer_ref(buyer, ref), id)
  hold(id, r, '')
  list_under(ref, id)
  return { 'ok', 'held', ends, r[EXP], shard.epoch, time }
end
