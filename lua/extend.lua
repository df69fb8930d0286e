-- extend.lua: the buyer is still paying; the hold lasts longer. A repeat is harmless: a
-- deadline never moves back.
--
-- a[1]  id        reservation id
-- a[2]  hold_for  ms from now until the deadline
-- a[3]  longest   ms from the creation until the latest deadline that can be reached
--
-- Returns { 'ok', deadline, exp, epoch, created } { 'conflict', state } { 'not_found' } { 'restoring' }
--
-- uses changes.lua: CHANGED, CREATED, DEADLINE, EXP, MODE, STATE, not_found, operations, read_record, reads, want_reservation
-- uses shard.lua: shard
-- uses states.lua: margin_of, put_off, stands_as

reads.extend = want_reservation

function operations.extend(a)
  local id, hold_for, longest = a[1], tonumber(a[2]), tonumber(a[3])
  local r = read_record(id)
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] ~= 'held' then return { 'conflict', r[STATE] } end
  if r[MODE] == 'queued' then return { 'conflict', 'waiting' } end
  if r[MODE] == 'offer' then return { 'conflict', stands_as(r) } end
  -- of a held reservation, changed is when it was made
  local deadline = math.min(shard.now + hold_for, r[CHANGED] + longest)
  -- the token keeps its margin before the end of the hold
  if deadline > r[DEADLINE] then put_off(id, r, deadline, deadline - shard.lead - margin_of(r), '') end
  return { 'ok', r[DEADLINE] - shard.lead, r[EXP], shard.epoch, r[CREATED] }
end
