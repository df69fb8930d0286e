-- replay.lua: movements that this server has lost, applied again as the journal tells them,
-- under the same numbers. It comes after states.lua; fence.lua calls it.
--
-- A movement gives a reservation's state whatever it was before: what the reservation took
-- is taken off, then what it takes now is added. recovery/history.go does the same in Go.

local taking = { held = HELD, in_doubt = IN_DOUBT, confirmed = CONFIRMED }

-- count adds what a reservation takes of cells and limits, or subtracts it
local function count(r, sign)
  local column = taking[r[STATE]]
  if not column then return end
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
    write_limit(charge[1], l[1] + n, l[2] + (r[STATE] == 'confirmed' and 0 or n))
  end
end

-- bind_as gives a reservation its key and its ref, or frees them, as change_state does. A
-- binding of buyer and lines lasts until the attempt is answered: it is not bound again.
local function bind_as(id, r, before)
  local state, was = r[STATE], before and before[STATE]
  if state == 'released' or state == 'expired' then
    unbind(id, r[GUARD])
    unbind(id, ref_field(r))
    unlist_under(r[REF], id)
  elseif was == 'held' or was == 'in_doubt' then
    if state == 'confirmed' and not is_key(r[GUARD]) then unbind(id, r[GUARD]) end
  elseif was == state then
    return
  elseif state == 'held' or state == 'in_doubt' then
    if is_key(r[GUARD]) and not read_binding(r[GUARD]) then bind(r[GUARD], id) end
    if r[REF] ~= '' and not read_binding(ref_field(r)) then bind(ref_field(r), id) end
    list_under(r[REF], id)
  else
    bind_again(id, r, state)
  end
end

-- follow applies the movement of a reservation
local function follow(m, state, at)
  local before = read_record(m.id)
  local after
  if m.record ~= '' then
    after = parse_record(m.record)
  elseif before and before[STATE] ~= 'tombstone' and state then
    after = {}
    for i = 1, FIELDS do after[i] = before[i] end
    after[STATE], after[CHANGED], after[CAUSE] = state, at, plain(m.cause)
  else
    return -- nothing tells of it before: its beginning is among the numbers that are missing
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
  bind_as(m.id, after, before)
end

-- adjust_again changes the stock of cells. Units that come back without going on sale again
-- are told by two movements, the first of which names the second.
local function adjust_again(m, before)
  for cell, n in string.gmatch(m.lines, '(%S+) (%-?%d+)') do
    local c = read_cell(cell)
    if c then
      c[STOCK], c[AVAILABLE] = c[STOCK] + tonumber(n), c[AVAILABLE] + tonumber(n)
      changed.cells[cell] = true
      if not (before and before.kind == 'returned' and match(before.cause, '^%S*') == m.id and match(m.cause, '^%S*') == before.id) then
        changed.adjustments[m.id] = cell .. ' ' .. n .. ' ' .. int(c[STOCK])
      else
        local key = before.id .. '|' .. m.id
        changed.returns[key] = '0' .. string.sub(changed.returns[key], 2)
      end
    end
  end
  notice = 'stock'
end

local function status_again(m)
  shard.status, shard.version = m.kind, tonumber(m.id)
  changed.meta.status, changed.meta.version = m.kind, m.id
  notice = 'sale'
end

local movement_form = '^([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$'

-- replay applies the movements of an entry. False: one of them has more effects than the
-- journal tells; nothing of the entry was applied.
local function replay(text, at)
  local movements = {}
  for line in string.gmatch(text, '[^\n]+') do
    local m = {}
    m.kind, m.id, m.was, m.lines, m.buyer, m.cause, m.record = match(line, movement_form)
    if not m.kind or m.kind == 'applied' or m.kind == 'loaded' or m.kind == 'repaired' or m.kind == 'rebuilt' then return false end
    movements[#movements + 1] = m
  end
  local now = shard.now
  shard.now = at -- times that are counted are those of the movements
  for i, m in ipairs(movements) do
    if m.kind == 'adjusted' then
      adjust_again(m, movements[i - 1])
    elseif m.kind == 'open' or m.kind == 'paused' or m.kind == 'closed' then
      status_again(m)
    elseif m.kind == 'returned' then
      follow(m, nil, at)
      changed.returns[m.id .. '|' .. match(m.cause, '^%S*')] = '1 ' .. m.lines .. '\t' .. records[m.id][RETURNED]
    elseif m.kind == 'extended' or m.kind == 'recreated' then
      follow(m, nil, at)
    elseif m.kind ~= 'missing' then
      follow(m, m.kind, at)
    end
  end
  shard.now = math.max(now, at)
  dirty = true
  return true
end
