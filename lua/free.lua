-- free.lua: the attempt was answered and its hold goes on, because the shop decides
-- later. The buyer may repeat the purchase. Bindings by key or ref stay.
--
-- a[1]  id  reservation id
--
-- Returns { 'ok', state } { 'not_found' } { 'restoring' }
--
-- uses bindings.lua: is_key, unbind
-- uses changes.lua: GUARD, MODE, STATE, dirty, not_found, operations, read_record, reads, want_reservation
-- uses queue.lua: counts_at_shop, from_shop, load_queue_state
-- uses shard.lua: shard

-- leave_shop makes room at the shop, which has answered an order and decides later
local function leave_shop(id)
  if not shard.queue then return end
  load_queue_state()
  if counts_at_shop(id) then
    from_shop(id)
    dirty = true
  end
end

reads.free = want_reservation

function operations.free(a)
  local r = read_record(a[1])
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if not is_key(r[GUARD]) then unbind(a[1], r[GUARD]) end
  if r[STATE] == 'held' and r[MODE] ~= 'queued' then leave_shop(a[1]) end
  return { 'ok', r[STATE] }
end
