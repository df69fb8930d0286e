-- sold.lua: the shop says which lines its order has. The reservation is confirmed, and the
-- books follow the order: units that it does not have go back on sale, and units that it has
-- beyond those held get a reservation of their own, unbacked where they are not there. To say the
-- same again changes nothing. It is made where confirm.lua is.
--
-- a[1]  id     reservation id
-- a[2]  word   as in confirm.lua
-- a[3]  cause  why
-- a[4]  more   id of the reservation of the units beyond those held; it follows from a[1]
-- a[5]  n      number of lines of the order, then for each: cell, quantity; each cell once
-- …     m      number of limits that the units beyond those held cost, then for each: field, amount
--
-- Returns { 'ok', state, fewer, more, more_state }  fewer: "cell quantity …" that were held and not
--                                                   sold; more: those that were sold beyond, and the
--                                                   state of their reservation; '': none
--         what confirm.lua returns otherwise
--
-- uses changes.lua: BUYER, CREATED, EXP, LINES, MODE, RETURNED, STATE, changed, operations, pairs_of, read_record, reads, want_reservation
-- uses confirm.lua: begin_sold, words_of_pairs
-- uses shard.lua: RETURNS_KEY, call, int, shard

reads.sold = want_reservation

-- beyond returns the lines of a that are not in b, each cell once
local function beyond(a, b)
  local units, order, lines = {}, {}, {}
  for _, line in ipairs(a) do
    if not units[line[1]] then order[#order + 1] = line[1] end
    units[line[1]] = (units[line[1]] or 0) + line[2]
  end
  for _, line in ipairs(b) do units[line[1]] = (units[line[1]] or 0) - line[2] end
  for _, cell in ipairs(order) do
    if units[cell] > 0 then lines[#lines + 1] = { cell, units[cell] } end
  end
  return lines
end

-- give_back_beyond returns what is left of a confirmed reservation beyond the order's lines
local function give_back_beyond(id, r, order_lines)
  local unsold = beyond(beyond(pairs_of(r[LINES]), pairs_of(r[RETURNED])), order_lines)
  if #unsold == 0 then return end
  local return_id = 'asked'
  if changed.returns[id .. '|' .. return_id] or call('HEXISTS', KEYS[RETURNS_KEY], id .. '|' .. return_id) == 1 then
    return_id = return_id .. '-' .. int(shard.seq + 1)
  end
  local returned = { id, return_id, '1', 'not_sold', #unsold }
  for _, line in ipairs(unsold) do
    returned[#returned + 1], returned[#returned + 2] = line[1], line[2]
  end
  operations['return'](returned)
end

function operations.sold(a)
  local id, cause, more_id = a[1], a[3], a[4]
  local order_lines, charges, k = {}, {}, 6
  for i = 1, tonumber(a[5]) do
    order_lines[i] = { a[k], tonumber(a[k + 1]) }
    k = k + 2
  end
  for i = 1, tonumber(a[k]) do charges[i] = { a[k + 2 * i - 1], tonumber(a[k + 2 * i]) } end
  local answer = operations.confirm({ id, a[2], cause, '' })
  if answer[1] ~= 'ok' then return answer end

  local r = read_record(id)
  local fewer, more, more_state = {}, beyond(order_lines, pairs_of(r[LINES])), ''
  if answer[2] == 'confirmed' then
    fewer = beyond(pairs_of(r[LINES]), order_lines)
    give_back_beyond(id, r, order_lines)
  end
  if #more > 0 then
    local known = read_record(more_id)
    more_state = known and known[STATE] or begin_sold(more_id, more, charges,
      { exp = r[EXP], created = r[CREATED], mode = r[MODE], buyer = r[BUYER], ref = '', cause = 'more than ' .. id .. ' held' })
  end
  return { 'ok', answer[2], words_of_pairs(fewer), words_of_pairs(more), more_state }
end
