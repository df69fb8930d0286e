-- apply.lua: load a sale, or the difference between the last applied file and
-- this one. All or nothing.
--
-- a[1]  version  of the sale that the difference was computed against; 0: there is none
-- a[2]  doc      the file, as canonical JSON
-- a[3]  starts   ms
-- a[4]  ends     ms
-- a[5]  cause    who
-- a[6]  deleted  epoch of the last sale under this id that was deleted; 0: there was none. A new one
--                has a later epoch, and owes nothing of that one
-- a[7]  n        number of cells, then for each: cell, delta, removed (1: the item has gone from the file)
--
-- Returns { 'ok', version } { 'version', version }
--         { 'short', i, available }    the i-th cell has not enough available units to take away
--         { 'in_use', i, stock, unavailable }  the i-th cell is to go, but units were added to it, or are held or sold
--         { 'too_many', i, stock }
--
-- uses changes.lua: MAX_UNITS, changed, notice, operations, read_cell, write_journal
-- uses open_offers.lua: offers_follow
-- uses shard.lua: AVAILABLE, SCHEMA_OF_SALES, STOCK, cells, int, shard

local CELLS_PER_MOVEMENT = 500

function operations.apply(a)
  if shard.version ~= tonumber(a[1]) then return { 'version', shard.version } end
  local deltas, k = {}, 8
  for i = 1, tonumber(a[7]) do
    deltas[i] = { a[k], tonumber(a[k + 1]), a[k + 2] == '1' }
    k = k + 3
  end
  for i, d in ipairs(deltas) do
    local c = read_cell(d[1]) or { 0, 0, 0, 0, 0 }
    if c[AVAILABLE] + d[2] < 0 then return { 'short', i, c[AVAILABLE] } end
    if c[STOCK] + d[2] > MAX_UNITS then return { 'too_many', i, c[STOCK] } end
    if d[3] and c[STOCK] + d[2] ~= 0 then return { 'in_use', i, c[STOCK], c[STOCK] - c[AVAILABLE] } end
  end

  local words = {}
  for i, d in ipairs(deltas) do
    local c = read_cell(d[1]) or { 0, 0, 0, 0, 0 }
    c[STOCK], c[AVAILABLE] = c[STOCK] + d[2], c[AVAILABLE] + d[2]
    cells[d[1]] = not d[3] and c
    changed.cells[d[1]] = true
    if d[2] ~= 0 then words[#words + 1] = d[1] .. ' ' .. int(d[2]) end
    if #words == CELLS_PER_MOVEMENT or (i == #deltas and #words > 0) then
      write_journal('loaded', int(shard.version + 1), '', table.concat(words, ' '), '', a[5], '')
      words = {}
    end
  end
  if not shard.exists then
    local deleted = tonumber(a[6])
    shard.exists, shard.epoch, shard.status = true, math.max(shard.now, deleted + 1), 'draft'
    changed.meta.epoch, changed.meta.status, changed.meta.schema = int(shard.epoch), 'draft', int(SCHEMA_OF_SALES)
    changed.meta.deleted = deleted > 0 and int(deleted)
  end
  shard.version, shard.starts, shard.ends = shard.version + 1, tonumber(a[3]), tonumber(a[4])
  changed.meta.version, changed.meta.doc = int(shard.version), a[2]
  changed.meta.starts, changed.meta.ends = a[3], a[4]
  write_journal('applied', int(shard.version), '', '', '', a[5], '')
  if shard.status == 'paused' then offers_follow(a[5]) end -- the sale may end later
  notice = 'sale'
  return { 'ok', shard.version }
end
