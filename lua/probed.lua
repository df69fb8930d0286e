-- probed.lua: the shop was asked about a reservation in doubt. If it has the order, the
-- reservation is confirmed. If it has none, that counts only if it was asked after the
-- deadline, because until then a request may still be under way; it counts once for
-- each time that the reservation was leased, and the second one releases.
--
-- a[1]  id       reservation id
-- a[2]  verdict  present | absent | unknown
-- a[3]  cause    what the shop answered
--
-- Returns { 'ok', state }, the state that holds now; { 'not_found' } { 'restoring' }; after present
--         whatever confirm.lua returns
--
-- uses changes.lua: STATE, not_found, operations, read_record, reads, want_reservation
-- uses probe.lua: probes_of, write_probes
-- uses states.lua: too_soon

reads.probed = want_reservation

function operations.probed(a)
  local id, verdict, cause = a[1], a[2], a[3]
  local r = read_record(id)
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if verdict == 'present' then return operations.confirm({ id, 'probe', cause }) end
  if verdict == 'absent' and r[STATE] == 'in_doubt' and too_soon(r) == 0 then
    local tries, next_at, absent, counted = probes_of(r)
    if tries > counted then
      write_probes(id, r, tries, next_at, absent + 1, tries)
      if absent > 0 then return operations.release({ id, 'probe', '0', cause }) end
    end
  end
  return { 'ok', r[STATE] }
end
