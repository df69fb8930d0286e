-- yield.lua: an edge that has the turn of an order cannot send it: another edge may.
--
-- a[1]  id    reservation id
-- a[2]  edge  the caller
-- a[3]  try   which try has the turn
--
-- Returns { 'ok', try } { 'conflict', state } it has not the turn; { 'not_found' } { 'restoring' }

reads.yield = want_reservation

function operations.yield(a)
  local id = a[1]
  local r = read_record(id)
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] ~= 'held' or r[MODE] ~= 'queued' then return { 'conflict', r[STATE] } end
  load_queue_state()
  local o = read_order(id)
  if not o or o.taker ~= a[2] or o.try ~= tonumber(a[3]) then return { 'conflict', 'waiting' } end
  dirty = true
  o.home = '-'
  back_to_line(id, o)
  return { 'ok', o.try }
end
