-- adjust.lua: add units to a cell, or take available ones away.
--
-- a[1]  id     adjustment id; the same id again returns the same answer
-- a[2]  cell   sku or sku@region
-- a[3]  delta  units, may be negative
-- a[4]  cause  who and why
--
-- Returns { 'ok', stock } { 'key_reused' } { 'unknown' } { 'short', available } { 'too_many', stock } { 'no_sale' }
--
-- uses changes.lua: MAX_UNITS, changed, move, notice, operations, read_cell, write_journal
-- uses shard.lua: ADJUSTMENTS_KEY, AVAILABLE, STOCK, call, int, shard

function operations.adjust(a)
  local id, cell, delta, cause = a[1], a[2], tonumber(a[3]), a[4]
  if not shard.exists then return { 'no_sale' } end
  local before = changed.adjustments[id] or call('HGET', KEYS[ADJUSTMENTS_KEY], id)
  if before then
    local c, d, stock = string.match(before, '^(%S+) (%-?%d+) (%d+)$')
    if c ~= cell or tonumber(d) ~= delta then return { 'key_reused' } end
    return { 'ok', tonumber(stock) }
  end
  local c = read_cell(cell)
  if not c then return { 'unknown' } end
  if c[AVAILABLE] + delta < 0 then return { 'short', c[AVAILABLE] } end
  if c[STOCK] + delta > MAX_UNITS then return { 'too_many', c[STOCK] } end
  c[STOCK] = c[STOCK] + delta
  move(cell, delta, nil, AVAILABLE)
  changed.adjustments[id] = cell .. ' ' .. int(delta) .. ' ' .. int(c[STOCK])
  write_journal('adjusted', id, '', cell .. ' ' .. int(delta), '', cause, '')
  notice = 'stock'
  return { 'ok', c[STOCK] }
end
