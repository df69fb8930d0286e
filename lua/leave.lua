-- leave.lua: an order leaves the line before its turn: its buyer has cancelled it, or cannot be
-- told any more. Its units go back on sale.
--
-- a[1]  id     reservation id
-- a[2]  cause  why
--
-- Returns { 'ok', 'released' } it was not sent, also where it has left the line before; { 'at_shop' } it
--         was sent; { 'conflict', state } it was sent, and has ended; { 'not_found' } { 'restoring' }
--
-- uses changes.lua: MODE, STATE, not_found, operations, read_record, reads, want_reservation
-- uses states.lua: change_state, give_back

reads.leave = want_reservation

function operations.leave(a)
  local r = read_record(a[1])
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] == 'released' and r[MODE] == 'queued' then return { 'ok', 'released' } end
  if r[STATE] ~= 'held' then return { 'conflict', r[STATE] } end
  if r[MODE] ~= 'queued' then return { 'at_shop' } end
  give_back(r, true)
  change_state(a[1], r, 'released', a[2])
  return { 'ok', 'released' }
end
