-- status.lua: open, pause or close a sale: draft → open ⇄ paused → closed.
--
-- a[1]  status  open | paused | closed
-- a[2]  cause   who
-- a[3]  version of the sale that the caller has seen, or ''
-- a[4]  backup  ms; when the backup was made from which the sale comes. It is noted, with the same
--               status too, until the status changes without it; or ''
--
-- Returns { 'ok', version } (the same status again changes nothing else) { 'conflict', status } { 'no_sale' }
--         { 'conflict', 'merging' } it is not opened before everything is merged
--         { 'version', version }    another one than the caller has seen: nothing was changed
--
-- uses changes.lua: changed, dirty, notice, operations, write_journal
-- uses shard.lua: int, shard

local reached_from = {
  open = { draft = true, paused = true },
  paused = { open = true },
  closed = { draft = true, open = true, paused = true },
}

function operations.status(a)
  local status, backup = a[1], (a[4] or '') ~= '' and a[4]
  if not shard.exists then return { 'no_sale' } end
  if shard.status == status then
    if backup then changed.meta.backup, dirty = backup, true end
    return { 'ok', shard.version }
  end
  if (a[3] or '') ~= '' and shard.version ~= tonumber(a[3]) then return { 'version', shard.version } end
  if status == 'open' and shard.merging then return { 'conflict', 'merging' } end
  if not (reached_from[status] and reached_from[status][shard.status]) then return { 'conflict', shard.status } end
  shard.status, shard.version = status, shard.version + 1
  changed.meta.status, changed.meta.version, changed.meta.backup = status, int(shard.version), backup
  write_journal(status, int(shard.version), '', '', '', a[2], '')
  notice = 'sale'
  return { 'ok', shard.version }
end
