-- status.lua: open, pause or close a sale: draft → open ⇄ paused → closed.
--
-- a[1]  status  open | paused | closed
-- a[2]  cause   who
-- a[3]  version of the sale that the caller has seen, or ''
-- a[4]  behind  'backup ms', when the backup was made from which the sale comes; 'loss ms', when it was accepted
--               that the disk has lost what was sold; 'bypass ms', when a bypass ended in which the shop sold
--               without reservations; or ''. It is noted, with the same status too, until the
--               status changes without it. A new backup or loss begins a new epoch, because the next numbers were
--               given to others: continues is 'epoch seq' of the one before. A new bypass is in the journal
--
-- Returns { 'ok', version } (the same status again changes nothing else) { 'conflict', status } { 'no_sale' }
--         { 'conflict', 'merging' } it is not opened before everything is merged
--         { 'version', version }    another one than the caller has seen: nothing was changed
--
-- uses changes.lua: changed, dirty, notice, operations, write_journal
-- uses open_offers.lua: offers_follow
-- uses shard.lua: META_KEY, call, int, shard

local reached_from = {
  open = { draft = true, paused = true },
  paused = { open = true },
  closed = { draft = true, open = true, paused = true },
}

-- fall_behind begins an epoch: what a ledger has acknowledged is of the one before. In a bypass Redis has lost nothing,
-- and its note does not replace an older one. It returns true if the journal is to have it.
local function fall_behind(behind)
  local noted = call('HGET', KEYS[META_KEY], 'behind')
  if noted == behind then return end
  if string.sub(behind, 1, 7) == 'bypass ' then
    if not noted or string.sub(noted, 1, 7) == 'bypass ' then changed.meta.behind = behind end
    dirty = true
    return true
  end
  changed.meta.continues = int(shard.epoch) .. ' ' .. int(shard.seq)
  shard.epoch = math.max(shard.now, shard.epoch + 1)
  changed.meta.epoch, changed.meta.behind = int(shard.epoch), behind
  changed.meta.acked, changed.meta.acked_at = false, false
  dirty = true
end

function operations.status(a)
  local status, behind = a[1], (a[4] or '') ~= '' and a[4]
  if not shard.exists then return { 'no_sale' } end
  if shard.status == status then
    if behind and fall_behind(behind) then write_journal(status, int(shard.version), '', '', '', a[2], '') end
    return { 'ok', shard.version }
  end
  if (a[3] or '') ~= '' and shard.version ~= tonumber(a[3]) then return { 'version', shard.version } end
  if status == 'open' and shard.merging then return { 'conflict', 'merging' } end
  if not (reached_from[status] and reached_from[status][shard.status]) then return { 'conflict', shard.status } end
  if behind then fall_behind(behind) else changed.meta.behind = false end
  shard.status, shard.version = status, shard.version + 1
  changed.meta.status, changed.meta.version = status, int(shard.version)
  write_journal(status, int(shard.version), '', '', '', a[2], '')
  offers_follow(a[2])
  notice = 'sale'
  return { 'ok', shard.version }
end
