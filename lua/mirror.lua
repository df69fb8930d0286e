-- mirror.lua: take, keep or give up the right to write a shard's numbers into keys of the shop's
-- own Redis, so that one edge writes and the others do not; and note how that goes.
--
-- a[1]  owner  the caller
-- a[2]  lease  ms for which the caller has the right, from now; 0: it gives it up
-- a[3]  state  how it goes, for operators; '': as before
--
-- Returns { 'ok' } { 'conflict' } another owner has the right { 'no_sale' }
--
-- uses changes.lua: changed, dirty, operations
-- uses shard.lua: META_KEY, call, int, shard

function operations.mirror(a)
  if not shard.exists then return { 'no_sale' } end
  local owner, lease = a[1], tonumber(a[2])
  local kept = call('HMGET', KEYS[META_KEY], 'mirror', 'mirror_until')
  local ends = tonumber(kept[2] or '0')
  -- as in outbox.lua
  local good = ends > shard.now and (lease == 0 or ends <= shard.now + lease)
  if kept[1] ~= owner and good then return { 'conflict' } end
  if lease == 0 then
    if kept[1] == owner then changed.meta.mirror_until, dirty = '0', true end
    return { 'ok' }
  end
  changed.meta.mirror, changed.meta.mirror_until = owner, int(shard.now + lease)
  if a[3] ~= '' then changed.meta.mirror_state = a[3] end
  dirty = true
  return { 'ok' }
end
