-- place.lua: where an order stands.
--
-- a[1]  id  reservation id
--
-- Returns { 'ok', state, place, left, seconds, paused, deadline }: waiting, or the state of the
--         reservation; place, how many orders go before it, and itself; left, seconds, paused as in
--         line.lua
--         { 'not_found' } { 'restoring' }

reads.place = want_reservation

function operations.place(a)
  local r = read_record(a[1])
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] ~= 'held' or r[MODE] ~= 'queued' then return { 'ok', r[STATE], 0, 0, 0, 0, r[DEADLINE] - shard.lead } end
  load_queue_state()
  local rank = call('ZRANK', KEYS[14], a[1])
  local left, seconds = left_lately()
  local still = q.paused or q.not_before > shard.now
  return { 'ok', 'waiting', rank and rank + 1 or 0, left, seconds, still and 1 or 0, r[DEADLINE] - shard.lead }
end
