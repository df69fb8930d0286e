-- free.lua: the attempt was answered and its hold goes on, because the shop decides
-- later. The buyer may repeat the purchase. Bindings by key or ref stay.
--
-- a[1]  id  reservation id
--
-- Returns { 'ok', state } { 'not_found' } { 'restoring' }

reads.free = want_reservation

function operations.free(a)
  local r = read_record(a[1])
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if not is_key(r[GUARD]) then unbind(a[1], r[GUARD]) end
  if shard.queue and r[STATE] == 'held' and r[MODE] ~= 'queued' then -- the shop has answered: another order may come
    leave_queue(a[1])
    dirty = true
  end
  return { 'ok', r[STATE] }
end
