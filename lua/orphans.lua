-- orphans.lua: after Redis has lost something, a hold may wait whose order is gone, and no edge
-- has its request open: its order cannot come any more. It is released.
--
-- a[1]  cursor  where to go on; 0: at the beginning
-- a[2]  most    about how many holds to look at in this call
-- a[3]  age     ms: only holds that have waited so long
--
-- Returns { 'ok', cursor, released }; cursor 0: all have been looked at
--         { 'restoring' }
--
-- uses changes.lua: CHANGED, MODE, STATE, operations, read_record
-- uses queue.lua: listed, load_queue_state, read_order
-- uses shard.lua: DEADLINES_KEY, call, shard
-- uses states.lua: change_state, give_back

function operations.orphans(a)
  if shard.merging then return { 'restoring' } end
  local page, released = call('ZSCAN', KEYS[DEADLINES_KEY], a[1], 'COUNT', a[2]), 0
  load_queue_state()
  for i = 1, #page[2], 2 do
    local id = page[2][i]
    local r = read_record(id)
    local waits = r and r[STATE] == 'held' and r[MODE] == 'queued' and shard.now - r[CHANGED] >= tonumber(a[3])
    local o = waits and read_order(id)
    if waits and not (o and listed(id, o)) then
      give_back(r, true)
      change_state(id, r, 'released', 'its order was lost')
      released = released + 1
    end
  end
  return { 'ok', page[1], released }
end
