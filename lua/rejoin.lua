-- rejoin.lua: an edge has the request of an order that waits open, and Redis may have lost the
-- order while it has the hold: it waits again.
--
-- a[1]  id      reservation id
-- a[2]  edge    the caller
-- a[3]  gate    as in queue.lua
-- a[4]  packed  what is to be sent
--
-- Returns { 'ok', state } { 'conflict', state } { 'not_found' } { 'restoring' }
--         { 'no_sale' }  all of the sale is lost: it may be rebuilt
--
-- uses changes.lua: MODE, STATE, not_found, operations, read_record, reads, want_reservation
-- uses queue.lua: listed, load_queue_state, read_order, wait_again
-- uses shard.lua: shard

reads.rejoin = want_reservation

function operations.rejoin(a)
  if not shard.exists then return { 'no_sale' } end
  local id = a[1]
  local r = read_record(id)
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] ~= 'held' or r[MODE] ~= 'queued' then return { 'conflict', r[STATE] } end
  load_queue_state()
  local o = read_order(id)
  if not o or not listed(id, o) then wait_again(id, r, a[2], a[3], a[4]) end
  return { 'ok', 'waiting' }
end
