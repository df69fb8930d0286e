-- return.lua: units of a confirmed reservation come back. It stays confirmed; their
-- share of the purchase limits is given back.
--
-- a[1]  id         reservation id
-- a[2]  return_id  the same id again has no effect and returns the same answer; to ask for all that
--                  is left is the same as to name it
-- a[3]  restock    1: the units go back on sale; 0: they leave the stock
-- a[4]  cause      why, or who
-- a[5]  n          number of lines, then for each: cell, quantity; 0: all that is left
-- …     merged     1: what they cost was given back in another life of the shard, see merge.lua
--
-- Returns { 'ok', lines }          all that was returned so far, "cell quantity …"
--         { 'conflict', state } { 'not_found' } { 'restoring' }
--         { 'key_reused' }         the return id was used for another return
--         { 'too_many', i, left }  of the i-th line less is left; i is 0 when nothing at all is
--
-- uses bindings.lua: same_lines
-- uses changes.lua: BUYER, CHARGED, CHARGES, COUNTED, LINES, PENDING, RETURNED, STATE, changed, move, not_found, operations, pairs_of, read_cell, read_limit, read_record, reads, text_of, want_reservation, write_journal, write_limit, write_record
-- uses shard.lua: AVAILABLE, CONFIRMED, RETURNS_KEY, STOCK, call, int

-- units_of adds up lines: cell → units, and the cells in their order
local function units_of(lines)
  local units, order = {}, {}
  for _, line in ipairs(lines) do
    if not units[line[1]] then order[#order + 1] = line[1] end
    units[line[1]] = (units[line[1]] or 0) + line[2]
  end
  return units, order
end

local function words_of(units, order, sign)
  local words = {}
  for _, cell in ipairs(order) do
    if (units[cell] or 0) > 0 then words[#words + 1] = cell .. ' ' .. int(sign * units[cell]) end
  end
  return table.concat(words, ' ')
end

-- escape writes a cell in the form that names of limits have
local function escape(cell)
  return (string.gsub(cell, '[^A-Za-z0-9._-]', function(c) return string.format('%%%02X', string.byte(c)) end))
end

-- concerned are those of the cells that are of a limit's SKU: sku itself, or else its
-- regions, sku@region
local function concerned(order, sku)
  local whole, regions, is_whole = {}, {}, sku == ''
  for _, cell in ipairs(order) do
    local name = escape(cell)
    if sku == '' or name == sku then
      whole[#whole + 1] = cell
      is_whole = true
    elseif string.sub(name, 1, #sku + 3) == sku .. '%40' then
      regions[#regions + 1] = cell
    end
  end
  return is_whole and whole or regions
end

-- give_back_part gives back what returned units cost: a limit on units as many of
-- them, a limit on orders when nothing that it concerns is left. A limit of a bundle concerns
-- no cell: it is given back when nothing of the order is left, because a unit does not say of
-- which bundle it was
local function give_back_part(r, order, units, left)
  local words, taken = {}, {}
  for _, charge in ipairs(pairs_of(r[CHARGES])) do
    local field, amount = charge[1], charge[2]
    -- per:every:count[:sku]|window|identity
    local count, sku = string.match(field, '^[^:|]*:[^:|]*:([^:|]*):?([^:|]*)|')
    local back = 0
    if count then
      local returned, remains = -(taken[field] or 0), 0
      local cells_of = concerned(order, sku)
      if not cells_of[1] then count, cells_of = 'orders', order end
      for _, cell in ipairs(cells_of) do
        returned = returned + (units[cell] or 0)
        remains = remains + left[cell]
      end
      if count == 'units' then
        back = math.max(math.min(amount, returned), 0)
      elseif count == 'orders' and returned > 0 and remains == 0 then
        back = amount
      end
      if count == 'units' then taken[field] = (taken[field] or 0) + back end
    end
    local l = read_limit(field)
    if back > 0 and l[COUNTED] then write_limit(field, l[CHARGED] - back, l[PENDING]) end
    if amount > back then words[#words + 1] = field .. ' ' .. int(amount - back) end
  end
  r[CHARGES] = table.concat(words, ' ')
end

reads['return'] = want_reservation

operations['return'] = function(a)
  local id, return_id, restock, cause = a[1], a[2], a[3], a[4]
  local r = read_record(id)
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] ~= 'confirmed' then return { 'conflict', r[STATE] } end
  local asked, k = {}, 6
  for i = 1, tonumber(a[5]) do
    asked[i] = { a[k], tonumber(a[k + 1]) }
    k = k + 2
  end
  local units, asked_order = units_of(asked)
  local asked_words = words_of(units, asked_order, 1)
  local key = id .. '|' .. return_id
  local before = changed.returns[key] or call('HGET', KEYS[RETURNS_KEY], key)
  if before then
    local flag, lines, answer = string.match(before, '^(%d) ([^\t]*)\t(.*)$')
    local same = same_lines(lines, asked_words)
    if #asked == 0 and same_lines(answer, r[LINES]) then same = true end
    if flag ~= restock or not same then return { 'key_reused' } end
    return { 'ok', answer }
  end

  local left, order = units_of(pairs_of(r[LINES]))
  local returned = units_of(pairs_of(r[RETURNED]))
  local any = 0
  for _, cell in ipairs(order) do
    left[cell] = left[cell] - (returned[cell] or 0)
    any = any + left[cell]
  end
  if any == 0 and #asked == 0 then return { 'too_many', 0, 0 } end
  if #asked == 0 then
    for _, cell in ipairs(order) do
      if left[cell] > 0 then units[cell] = left[cell] end -- a cell that got all back may be gone
    end
  end
  local so_far = {}
  for i, line in ipairs(asked) do
    so_far[line[1]] = (so_far[line[1]] or 0) + line[2]
    if so_far[line[1]] > (left[line[1]] or 0) then return { 'too_many', i, left[line[1]] or 0 } end
  end

  for cell, quantity in pairs(units) do
    local c = read_cell(cell)
    move(cell, quantity, CONFIRMED, restock == '1' and AVAILABLE or nil)
    if restock ~= '1' then c[STOCK] = c[STOCK] - quantity end
    left[cell] = left[cell] - quantity
    returned[cell] = (returned[cell] or 0) + quantity
  end
  if a[k] ~= '1' then give_back_part(r, order, units, left) end
  r[RETURNED] = words_of(returned, order, 1)
  write_record(id, r)
  changed.returns[key] = restock .. ' ' .. words_of(units, order, 1) .. '\t' .. r[RETURNED]
  -- each of the two names the other first: Movement.OfReturn of package reservation reads it
  local because = cause ~= '' and ' ' .. cause or ''
  write_journal('returned', id, 'confirmed', words_of(units, order, 1), r[BUYER], return_id .. because, text_of(id))
  if restock ~= '1' then write_journal('adjusted', return_id, '', words_of(units, order, -1), '', id .. because, '') end
  return { 'ok', r[RETURNED] }
end
