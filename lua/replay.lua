-- replay.lua: movements that this server has lost, applied again as the journal tells them,
-- under the same numbers. It comes after states.lua; fence.lua calls it.
--
-- A movement gives a reservation's state whatever it was before: what the reservation took
-- is taken off, then what it takes now is added. Movement.Apply of package journal does the same in Go.
-- Where earlier movements are missing, a movement may not follow from what is here. The journal
-- then gets it as it follows, or as missing too: what it tells must add up.
--
-- uses bindings.lua: bind, bind_again, bound_to, is_key, list_under, note_end, ref_field, unbind, unlist_under
-- uses changes.lua: CAUSE, CHANGED, CHARGED, CHARGES, DEADLINE, FIELDS, GUARD, LINES, MODE, PENDING, REF, RETURNED, STATE, changed, dirty, notice, pairs_of, parse_record, plain, read_cell, read_limit, read_record, write_limit, write_record
-- uses queue.lua: SENT, count_shop, leave_queue, load_queue_state, to_shop
-- uses shard.lua: AVAILABLE, META_KEY, SCHEMA_OF_QUEUES, STOCK, call, concat, int, match, records, shard
-- uses states.lua: columns, count_unpaid, hold_unpaid, index, swapped, unindex
-- uses waitlist.lua: waitlist

-- what a movement of each kind does, as journal/kinds.go has it: the state that a reservation enters, a
-- change of stock, of a sale's status, or whether offers are made. opaque: more than the journal tells
local effects = {
  held = { reservation = true, enters = 'held' },
  in_doubt = { reservation = true, enters = 'in_doubt' },
  confirmed = { reservation = true, enters = 'confirmed' },
  released = { reservation = true, enters = 'released' },
  expired = { reservation = true, enters = 'expired' },
  unbacked = { reservation = true, enters = 'unbacked' },
  extended = { reservation = true },
  returned = { reservation = true, returned = true },
  recreated = { reservation = true, enters = 'confirmed' },
  adjusted = { stock = true },
  loaded = { opaque = true },
  applied = { opaque = true },
  open = { status = true },
  paused = { status = true },
  closed = { status = true },
  repaired = { opaque = true },
  rebuilt = { opaque = true },
  entered = { entry = true },
  left = { entry = true },
  offers_paused = { offers = true },
  offers_resumed = { offers = true },
  missing = {},
}

-- count adds what a reservation takes of cells and limits, or subtracts it
local function count(r, sign)
  local column = columns[r[STATE]]
  if not column or column == AVAILABLE then return end
  for i, text in ipairs({ r[LINES], r[RETURNED] }) do
    for _, line in ipairs(pairs_of(text)) do
      local c, n = read_cell(line[1]), (i == 1 and sign or -sign) * line[2]
      if c then
        c[column], c[AVAILABLE] = c[column] + n, c[AVAILABLE] - n
        changed.cells[line[1]] = true
      end
    end
  end
  for _, charge in ipairs(pairs_of(r[CHARGES])) do
    local l, n = read_limit(charge[1]), sign * charge[2]
    write_limit(charge[1], l[CHARGED] + n, l[PENDING] + (r[STATE] == 'confirmed' and 0 or n))
  end
end

-- bind_as gives a reservation its key and its ref, or frees them, as change_state does. A
-- binding of buyer and lines lasts until the attempt is answered: it is not bound again. A
-- reserve found its key free, or the time of the key over, by a clock that may have stepped since:
-- what was reserved at the time of the movement takes its key and its ref from any other. A hold that a
-- rebuild merged is older, and one that is held again after a swap takes nothing, see hold_again.
local function bind_as(id, r, before, at)
  local state, was = r[STATE], before and before[STATE]
  if was ~= state then note_end(id, r, was, state, r[CAUSE]) end
  if state == 'released' or state == 'expired' then
    unbind(id, r[GUARD])
    unbind(id, ref_field(r))
    unlist_under(r[REF], id)
  elseif was == 'held' or was == 'in_doubt' then
    if state == 'confirmed' and not is_key(r[GUARD]) then unbind(id, r[GUARD]) end
  elseif was == state then
    return
  elseif state == 'held' or state == 'in_doubt' then
    local reserved = r[CHANGED] == at and r[CAUSE] ~= swapped
    if is_key(r[GUARD]) and (reserved or not bound_to(r[GUARD])) then bind(r[GUARD], id) end
    if reserved or not bound_to(ref_field(r)) then bind(ref_field(r), id) end
    list_under(r[REF], id)
  else
    bind_again(id, r, state)
  end
end

-- queue_as takes an order out of the line where this server has not heard that it was sent, or
-- how it ended. What it has not heard of waits again when its edge says so, see rejoin.lua.
local function queue_as(id, r, before)
  local was, waits = before and before[MODE] == 'queued' and before[STATE] == 'held', r[MODE] == 'queued' and r[STATE] == 'held'
  if waits then
    if not shard.queue then -- what is at the shop, which this server has or has just heard of
      load_queue_state()
      count_shop()
    end
    changed.meta.queue, shard.queue = '1', true
    if shard.schema < SCHEMA_OF_QUEUES then changed.meta.schema = int(SCHEMA_OF_QUEUES) end
    -- the shop has put it off: its edge tells what is to be sent
    if before and before[STATE] == 'held' and not was then leave_queue(id) end
  end
  if shard.queue and r[STATE] == 'held' and (not before or before[STATE] == 'tombstone') then
    load_queue_state()
    count_shop(id, r[MODE], r[CHANGED])
  end
  if waits or not before or before[STATE] ~= 'held' or not was and r[STATE] == 'held' then return end
  if shard.queue then leave_queue(id) end
  if r[STATE] == 'held' then
    load_queue_state()
    to_shop(id, SENT)
  end
end

-- entry_again makes an entry again, or ends it. False: it was here before it had entered.
local function entry_again(m, at)
  local number, line = tonumber(m.id), pairs_of(m.lines)[1]
  if m.kind == 'left' then
    waitlist.take(number, m.cause)
    return true
  end
  if waitlist.entry(number) then return false end
  waitlist.put({ number = number, state = 'w', cell = line[1], quantity = line[2], since = at, buyer = m.buyer, identities = m.cause })
  return true
end

-- from which states a movement leads; '' is before the reservation
local leads_from = {
  in_doubt = { held = true },
  confirmed = { held = true, in_doubt = true, released = true, expired = true, unbacked = true },
  released = { held = true, in_doubt = true, expired = true, unbacked = true },
  expired = { held = true },
  unbacked = { released = true, expired = true },
}
-- what a movement with a record is where it is the first that is known
local begins_as = { extended = 'held', confirmed = 'recreated', unbacked = 'unbacked' }

-- follows reports whether a movement follows from a state, and makes it one that does
local function follows(m, state)
  if m.was == state then return m.record ~= '' or state ~= '' end
  if state ~= '' then
    if not leads_from[m.kind] or not leads_from[m.kind][state] then return false end
    m.was, m.altered = state, true
    return true
  end
  if m.record == '' or not begins_as[m.kind] then return false end
  m.kind, m.was, m.lines, m.altered = begins_as[m.kind], '', parse_record(m.record)[LINES], true
  return true
end

-- follow applies the movement of a reservation. False: what came before it is missing.
local function follow(m, at)
  local before = read_record(m.id)
  if not follows(m, before and before[STATE] ~= 'tombstone' and before[STATE] or '') then return false end
  local state = effects[m.kind].enters
  local after
  if m.record ~= '' then
    after = parse_record(m.record)
  else
    after = {}
    for i = 1, FIELDS do after[i] = before[i] end
    after[STATE], after[CHANGED], after[CAUSE] = state, at, plain(m.cause)
  end
  if before then
    count(before, -1)
    unindex(m.id, before[STATE])
  end
  if before and state then count_unpaid(before, state) end
  if state == 'held' then hold_unpaid(after) end
  write_record(m.id, after)
  count(after, 1)
  local listed = after[STATE] == 'held' and after[DEADLINE] or after[CHANGED]
  index(m.id, after[STATE], listed)
  bind_as(m.id, after, before, at)
  queue_as(m.id, after, before)
  if after[MODE] == 'offer' then waitlist.follow(m.id, after) end
  return true
end

-- adjust_again changes the stock of cells. Units that come back without going on sale again
-- are told by two movements, the first of which names the second. False: the first one does
-- not follow.
local function adjust_again(m, before)
  local of_return = before and before.kind == 'returned' and match(before.cause, '^%S*') == m.id and match(m.cause, '^%S*') == before.id
  if of_return and before.lost then return false end
  for cell, n in string.gmatch(m.lines, '(%S+) (%-?%d+)') do
    local c = read_cell(cell)
    if c then
      c[STOCK], c[AVAILABLE] = c[STOCK] + tonumber(n), c[AVAILABLE] + tonumber(n)
      changed.cells[cell] = true
      if not of_return then
        changed.adjustments[m.id] = cell .. ' ' .. n .. ' ' .. int(c[STOCK])
      else
        local key = before.id .. '|' .. m.id
        changed.returns[key] = '0' .. string.sub(changed.returns[key], 2)
      end
    end
  end
  notice = 'stock'
  return true
end

local function status_again(m)
  shard.status, shard.version = m.kind, tonumber(m.id)
  changed.meta.status, changed.meta.version = m.kind, m.id
  notice = 'sale'
end

local movement_form = '^([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$'

-- forget_act drops the scheduled act that a movement has done: it is not done once more
local function forget_act(m)
  local number = match(m.cause, ' act (%d+)$')
  local acts = number and (changed.meta.acts or call('HGET', KEYS[META_KEY], 'acts'))
  if not acts then return end
  local rest = string.gsub('\n' .. acts, '\n' .. number .. '\t[^\n]*', '')
  changed.meta.acts = rest ~= '' and string.sub(rest, 2)
  changed.meta.next_act = match(rest, '^\n%d+\t(%d+)') or false
end

-- again applies a movement. False: it does not follow from what is here.
local function again(m, before, at)
  local effect = effects[m.kind]
  if effect.stock or effect.status then forget_act(m) end
  if effect.stock then return adjust_again(m, before) end
  if effect.status then status_again(m) end
  if effect.entry then return entry_again(m, at) end
  if effect.offers then waitlist.pause(m.kind == 'offers_paused') end
  if not effect.reservation then return true end
  if not follow(m, at) then return false end
  if effect.returned then
    changed.returns[m.id .. '|' .. match(m.cause, '^%S*')] = '1 ' .. m.lines .. '\t' .. records[m.id][RETURNED]
  end
  return true
end

-- replay applies the movements of an entry, the first of which has a number. It returns the
-- entry as the journal must have it, and how many of its movements are missing. False: one of
-- them has more effects than the journal tells, or is of a kind that is not known; nothing of the
-- entry was applied.
local function replay(text, at, first)
  local movements = {}
  for line in string.gmatch(text, '[^\n]+') do
    local m = {}
    m.kind, m.id, m.was, m.lines, m.buyer, m.cause, m.record = match(line, movement_form)
    if not effects[m.kind] or effects[m.kind].opaque then return false end
    movements[#movements + 1] = m
  end
  local now, lost, altered = shard.now, 0, false
  shard.now = at -- times that are counted are those of the movements
  for i, m in ipairs(movements) do
    if not again(m, movements[i - 1], at) then
      m.lost, lost = true, lost + 1
    end
    altered = altered or m.lost or m.altered
  end
  shard.now = math.max(now, at)
  dirty = true
  if not altered then return text, 0 end
  local lines = {}
  for i, m in ipairs(movements) do
    lines[i] = m.lost and 'missing\t' .. int(first + i - 1) .. '\t\t\t\t\t' or concat({ m.kind, m.id, m.was, m.lines, m.buyer, m.cause, m.record }, '\t')
  end
  return concat(lines, '\n'), lost
end
