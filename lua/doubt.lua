-- doubt.lua: it is not known whether the shop took the order. The units stay out of
-- stock until that is resolved.
--
-- a[1]  id     reservation id
-- a[2]  cause  what was seen: status_500, timeout, connection_lost, …
--
-- Returns { 'ok', state }, the state that holds now; { 'conflict', state } it is an offer, see waitlist.lua
--         { 'not_found' } { 'restoring' }
--
-- uses changes.lua: MODE, STATE, not_found, operations, read_record, reads, want_reservation
-- uses states.lua: change_state, stands_as

reads.doubt = want_reservation

function operations.doubt(a)
  local r = read_record(a[1])
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[MODE] == 'offer' then return { 'conflict', stands_as(r) } end
  if r[STATE] == 'held' then change_state(a[1], r, 'in_doubt', a[2]) end
  return { 'ok', r[STATE] }
end
