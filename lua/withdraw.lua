-- withdraw.lua: a person leaves the waiting list. An offer ends, and its units go to the next.
--
-- a[1]  number  of the entry; '': the buyer's, which may have got another number since
-- a[2]  buyer   hash of the buyer whose entry it is; '': of any
-- a[3]  cause   why
--
-- Returns { 'ok' }
--         { 'not_found' } { 'restoring' }  there is no such entry of this buyer, see not_found
--
-- uses changes.lua: STATE, not_found, operations, read_record, write_journal
-- uses shard.lua: int
-- uses states.lua: change_state, give_back
-- uses waitlist.lua: waitlist

function operations.withdraw(a)
  local number = tonumber(a[1]) or waitlist.number_under(a[2])
  local e = number and waitlist.entry(number)
  if not e or a[2] ~= '' and a[2] ~= e.buyer then return not_found() end
  if e.state == 'o' then
    local id = waitlist.id_of(e)
    local r = read_record(id)
    if r and r[STATE] == 'held' then
      give_back(r, true)
      change_state(id, r, 'released', a[3])
      return { 'ok' }
    end
  end
  waitlist.take(number, a[3])
  write_journal('left', int(number), '', e.cell .. ' ' .. int(e.quantity), e.buyer, a[3], '')
  return { 'ok' }
end
