-- movein.lua: enter what was bought before the sale came here, as a confirmed reservation. Only
-- a draft takes it: nothing else has sold of its stock yet.
--
-- a[1]  id     reservation id, made of where the purchase was read
-- a[2]  buyer  hash of the buyer
-- a[3]  cause  where it was read, and who says so
-- a[4]  mode   response | backend
-- a[5]  n      number of lines, then for each: cell, quantity
-- …     m      number of limits, then for each: field, amount. They are charged without a check
--
-- Returns { 'ok', 1 } it is entered; { 'ok', 0 } it was before, with the same buyer and lines
--         { 'key_reused' }         it was before, with others
--         { 'conflict', status }   the sale is no draft
--         { 'unknown', i }         there is no cell of the i-th line
--         { 'short', i, available } it has not as many units left
--         { 'no_sale' }
--
-- uses changes.lua: BUYER, CHARGED, LINES, PENDING, STATE, complete, move, notice, operations, plain, read_cell, read_limit, read_record, reads, text_of, want, want_cell, want_reservation, wanted_limits, write_journal, write_limit, write_record
-- uses shard.lua: AVAILABLE, CONFIRMED, concat, int, shard

local function movein_lines(a)
  local lines, words, k = {}, {}, 6
  for i = 1, tonumber(a[5]) do
    lines[i] = { a[k], tonumber(a[k + 1]) }
    words[i] = a[k] .. ' ' .. int(lines[i][2])
    k = k + 2
  end
  return lines, words, k
end

function reads.movein(a)
  want_reservation(a)
  local lines, _, k = movein_lines(a)
  for _, line in ipairs(lines) do want_cell(line[1]) end
  for i = 1, tonumber(a[k]) do want(wanted_limits, a[k + 2 * i - 1]) end
end

function operations.movein(a)
  if not shard.exists then return { 'no_sale' } end
  local id, lines, words, k = a[1], movein_lines(a)
  local known = read_record(id)
  if known then
    local same = known[STATE] ~= 'tombstone' and known[BUYER] == a[2] and known[LINES] == concat(words, ' ')
    return same and { 'ok', 0 } or { 'key_reused' }
  end
  if shard.status ~= 'draft' then return { 'conflict', shard.status } end
  local asked = {}
  for i, line in ipairs(lines) do
    local c = read_cell(line[1])
    if not c then return { 'unknown', i } end
    asked[line[1]] = (asked[line[1]] or 0) + line[2]
    if c[AVAILABLE] < asked[line[1]] then return { 'short', i, c[AVAILABLE] } end
  end

  local charges = {}
  for i = 1, tonumber(a[k]) do
    local field, amount = a[k + 2 * i - 1], tonumber(a[k + 2 * i])
    charges[i] = field .. ' ' .. int(amount)
    local l = read_limit(field)
    write_limit(field, l[CHARGED] + amount, l[PENDING])
  end
  for _, line in ipairs(lines) do move(line[1], line[2], AVAILABLE, CONFIRMED) end
  local r = complete({ 'confirmed', shard.time, shard.time, shard.time, shard.now, a[4], a[2], concat(words, ' '), concat(charges, ' '), plain(a[3]), shard.version })
  write_record(id, r)
  write_journal('recreated', id, '', r[LINES], r[BUYER], a[3], text_of(id))
  notice = 'stock'
  return { 'ok', 1 }
end
