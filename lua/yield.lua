-- yield.lua: an edge that has the turn of an order cannot send it: another edge may. Or it does not know
-- whether Redis has heard that it sends, and does not send it therefore: the order waits on. Or it cannot
-- send it now, and lets others go first.
--
-- a[1]  id       reservation id
-- a[2]  edge     the caller
-- a[3]  try      which try has the turn
-- a[4]  packed   what is to be sent, where Redis may have heard that it is; absent or '': it has not
-- a[5]  longest  ms that it may wait then
-- a[6]  margin   as in reserve.lua
-- a[7]  gate     from now on only an edge that has a gate with this print can send it; absent or '': as before
-- a[8]  behind   it goes behind orders whose numbers are at most so much above its own; absent or 0: it keeps its place
-- a[9]  open     1: its request is open at the caller, which gets the next turn of it as well
--
-- Returns { 'ok', try } { 'conflict', state } it has not the turn; { 'not_found' } { 'restoring' }
--
-- uses anew.lua: begin_anew
-- uses changes.lua: MODE, STATE, dirty, not_found, operations, read_record, reads, want_reservation
-- uses queue.lua: at_head, back_to_line, from_shop, load_queue_state, q, read_order, to_line
-- uses shard.lua: int, shard

reads.yield = want_reservation

function operations.yield(a)
  local id, packed, gate, behind = a[1], a[4] ~= '' and a[4], a[7] ~= '' and a[7], tonumber(a[8] or '0')
  local r = read_record(id)
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] ~= 'held' or r[MODE] ~= 'queued' and not packed then return { 'conflict', r[STATE] } end
  load_queue_state()
  local o = read_order(id)
  if not o or o.taker ~= a[2] or o.try ~= tonumber(a[3]) then return { 'conflict', 'waiting' } end
  dirty = true
  if r[MODE] == 'queued' then
    if not packed and a[9] ~= '1' then o.home = '-' end
    o.gate = gate or o.gate
    o.number = o.number + behind
    back_to_line(id, o)
    if behind > 0 then q.line[id] = o.number end
    if q.next > shard.now * 1000 then -- its turn was not used: another order gets it
      q.next = shard.now * 1000
      q.fields.next = int(q.next)
    end
  else
    begin_anew(id, r, 'queued', tonumber(a[5]), tonumber(a[6]), 'unsent')
    from_shop(id)
    o.taker, o.sent = '-', false
    to_line(id, at_head(o), o, packed)
  end
  return { 'ok', o.try }
end
