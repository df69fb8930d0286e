-- schedule.lua: plan an act of a sale for a time: to open, pause, resume or close it, or to change its
-- stock. The same act for the same time again changes nothing.
--
-- a[1]  version  of the sale by which the caller has checked the act
-- a[2]  at       ms by Redis's own time
-- a[3]  act      open | pause | resume | close | stock
-- a[4]  cell     of stock: sku or sku@region; else ''
-- a[5]  change   of stock: +n, -n, or =n for what the stock becomes; else ''
-- a[6]  by       who
--
-- Returns { 'ok', number, new }    new 0: it is planned already
--         { 'no_sale' } { 'version', version } { 'conflict', status } { 'unknown' }
--         { 'late', time }         at has passed
--         { 'too_many', most }     acts are planned
--
-- uses acts.lua: MOST_ACTS, read_acts, write_acts
-- uses changes.lua: changed, notice, operations, plain, read_cell
-- uses shard.lua: META_KEY, call, concat, int, shard, time

function operations.schedule(a)
  local at, kind, cell, change = tonumber(a[2]), a[3], a[4], a[5]
  if not shard.exists then return { 'no_sale' } end
  if shard.version ~= tonumber(a[1]) then return { 'version', shard.version } end
  if shard.status == 'closed' then return { 'conflict', shard.status } end
  if kind == 'stock' and not read_cell(cell) then return { 'unknown' } end
  if at <= time then return { 'late', time } end
  local all = read_acts('acts')
  for _, act in ipairs(all) do
    if act.at == at and act.kind == kind and act.cell == cell and act.change == change then return { 'ok', act.number, 0 } end
  end
  if #all >= MOST_ACTS then return { 'too_many', MOST_ACTS } end
  local number = tonumber(call('HGET', KEYS[META_KEY], 'act') or '0') + 1
  changed.meta.act = int(number)
  local line = concat({ int(number), int(at), kind, cell, change, int(shard.epoch), plain(a[6]), int(time), '' }, '\t')
  all[#all + 1] = { line = line, number = number, at = at }
  write_acts(all)
  notice = 'sale'
  return { 'ok', number, 1 }
end
