-- rebuilt.lua: all of a shard is restored; its new life begins, with this as the first
-- entry of its journal.
--
-- a[1]  epoch      of the life that was restored
-- a[2]  clock      ms; the shard's clock must not be behind this
-- a[3]  status     of the sale from now on
-- a[4]  cause      who, and from what
-- a[5]  forgotten  ms; the latest exp of what was not restored because it is over, see forget.lua; 0: none
-- a[6]  waitlist   1: people have waited
--
-- Returns { 'ok', seq } (also when it has begun already); { 'conflict' } another process restores it
--
-- uses changes.lua: changed, notice, operations, write_journal
-- uses open_offers.lua: offers_follow
-- uses shard.lua: META_KEY, call, int, shard
-- uses waitlist.lua: waitlist

function operations.rebuilt(a)
  local epoch = tonumber(a[1])
  if not shard.restoring and shard.epoch == epoch then return { 'ok', shard.seq } end
  if shard.restoring ~= epoch then return { 'conflict' } end
  shard.exists, shard.epoch, shard.status, shard.restoring = true, epoch, a[3], false
  shard.now = math.max(shard.now, tonumber(a[2]))
  changed.meta.restoring, changed.meta.epoch, changed.meta.status = false, int(epoch), a[3]
  local forgotten = math.max(tonumber(a[5] or '0'), tonumber(call('HGET', KEYS[META_KEY], 'forgotten') or '0'))
  if forgotten > 0 then changed.meta.forgotten = int(forgotten) end
  if a[6] == '1' then waitlist.keep() end
  write_journal('rebuilt', int(shard.version), '', '', '', a[4], '')
  offers_follow(a[4])
  notice = 'sale'
  return { 'ok', shard.seq }
end
