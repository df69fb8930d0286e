-- delete.lua: delete a closed sale that has no open hold, with its journal. What refers to one
-- of its reservations afterwards finds nothing.
--
-- a[1]  force  1: even if the ledger or the outbox's receiver does not have all movements
-- a[2]  epoch  of the sale that is meant
--
-- Returns { 'ok' } { 'no_sale' }
--         { 'conflict', status }          it is not closed, or (restoring, merging) it is being rebuilt
--         { 'in_use', open, unbacked }    holds that are held or in doubt, and orders without stock
--         { 'short', behind }             movements that a follower of the journal does not have
--
-- uses changes.lua: operations
-- uses shard.lua: DEADLINES_KEY, IN_DOUBT_KEY, META_KEY, UNBACKED_KEY, call, shard

-- lacking returns how many movements a follower lacks that has ever acknowledged one
local function lacking(has, at)
  if not at then return 0 end
  return shard.seq - tonumber(has or '0')
end

function operations.delete(a)
  if not shard.exists or shard.epoch ~= tonumber(a[2]) then return { 'no_sale' } end
  if shard.restoring then return { 'conflict', 'restoring' } end
  if shard.merging then return { 'conflict', 'merging' } end
  if shard.status ~= 'closed' then return { 'conflict', shard.status } end
  local open = call('ZCARD', KEYS[DEADLINES_KEY]) + call('ZCARD', KEYS[IN_DOUBT_KEY])
  local unbacked = call('ZCARD', KEYS[UNBACKED_KEY])
  if open + unbacked > 0 then return { 'in_use', open, unbacked } end
  local meta = call('HMGET', KEYS[META_KEY], 'acked', 'acked_at', 'sent', 'sent_at')
  local behind = math.max(lacking(meta[1], meta[2]), lacking(meta[3], meta[4]))
  if behind > 0 and a[1] ~= '1' then return { 'short', behind } end
  call('UNLINK', unpack(KEYS))
  shard.exists, shard.lead_changed = false, false
  return { 'ok' }
end
