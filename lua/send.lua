-- send.lua: an edge that has the turn of an order sends it to the shop, right after this. From
-- now on no other edge may: if the answer to this is lost, the hold is in doubt at its deadline.
-- The hold starts over: its deadline and its token.
--
-- a[1]  id        reservation id
-- a[2]  edge      the caller
-- a[3]  try       which try has the turn; told: the caller was promised it, and tells it again after
--                 a fence that has lost it
-- a[4]  mode      response | backend
-- a[5]  hold_for  ms from now until the deadline
-- a[6]  margin    ms that the token expires before it
-- a[7]  n         as in turn.lua, with a[8]; absent: any number
-- a[8]  per
--
-- Returns { 'ok', state, deadline, exp, epoch, created }
--         { 'too_soon', wait }   by the pace it may not go yet: the caller has the turn, and asks again in wait ms
--         { 'conflict', state }  another edge has the turn, or the order does not wait any more
--         { 'not_found' } { 'restoring' }
--
-- uses anew.lua: begin_anew
-- uses changes.lua: CHANGED, CREATED, DEADLINE, EXP, MODE, STATE, not_found, operations, read_record, reads, want_reservation
-- uses queue.lua: SENT, drop_packed, every_of, from_line, goes, load_queue_state, read_order, to_shop, too_early, write_order
-- uses shard.lua: shard
-- uses states.lua: stands_as

reads.send = want_reservation

function operations.send(a)
  local id, edge, told = a[1], a[2], a[3] == 'told'
  local r = read_record(id)
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] ~= 'held' or r[MODE] == 'offer' then return { 'conflict', stands_as(r) } end
  load_queue_state()
  local o = read_order(id)
  if not told and (not o or o.taker ~= edge or o.try ~= tonumber(a[3])) then return { 'conflict', 'waiting' } end
  if r[MODE] == 'queued' then
    local every = every_of(tonumber(a[7] or '0'), tonumber(a[8] or '0'))
    local wait = told and 0 or too_early(every)
    if wait > 0 then return { 'too_soon', wait } end
    if not told then goes(every) end
    begin_anew(id, r, a[4], tonumber(a[5]), tonumber(a[6]), 'sent')
    if o then
      if o.taker == '-' then from_line(id) end
      drop_packed(id, o)
      o.taker, o.sent = edge, true
      write_order(id, o)
    end
    to_shop(id, SENT)
  end
  -- the deadline by the time by which it was made: the lead may have taken a step in since
  return { 'ok', 'held', r[CREATED] + r[DEADLINE] - r[CHANGED], r[EXP], shard.epoch, r[CREATED] }
end
