-- again.lua: the shop has said that an order is to come later. It waits again, before all
-- others.
--
-- a[1]  id       reservation id
-- a[2]  edge     the caller, which has sent it
-- a[3]  try      with which try it was sent; 0: it went to the shop at once
-- a[4]  longest  ms that it may wait
-- a[5]  margin   as in reserve.lua
-- a[6]  gate     as in queue.lua
-- a[7]  packed   what is to be sent
-- a[8]  later    ms for which no order goes to the shop
-- a[9]  most     how often it may be put off
--
-- Returns { 'ok', state }, also when it waits already, or has waited and was sent again: a repeat that
--         comes late changes nothing
--         { 'too_many', times }  it was put off as often as it may be
--         { 'conflict', state } { 'not_found' } { 'restoring' }
--
-- uses anew.lua: begin_anew
-- uses changes.lua: CHANGED, MODE, STATE, changed, not_found, operations, read_record, reads, want_reservation
-- uses queue.lua: at_head, before_numbers, count_shop, from_shop, listed, load_queue_state, q, read_order, to_line, wait_again
-- uses shard.lua: int, shard
-- uses states.lua: stands_as

reads.again = want_reservation

function operations.again(a)
  local id, edge, try = a[1], a[2], tonumber(a[3])
  local r = read_record(id)
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] ~= 'held' or r[MODE] == 'offer' then return { 'conflict', stands_as(r) } end
  load_queue_state()
  local o = read_order(id)
  if r[MODE] == 'queued' then
    -- told again after a fence that has lost the order, and not that it waits
    if not o or not listed(id, o) then wait_again(id, r, edge, a[6], a[7]) end
    return { 'ok', 'waiting' }
  end
  o = o or { home = edge, try = try, size = 0, again = 0, since = shard.now, number = before_numbers(r[CHANGED]), taker = edge, gate = a[6] }
  if o.taker ~= edge then return { 'conflict', 'held' } end
  if try < o.try then return { 'ok', 'held' } end
  if o.again >= tonumber(a[9]) then return { 'too_many', o.again } end
  count_shop()
  begin_anew(id, r, 'queued', tonumber(a[4]), tonumber(a[5]), 'again')
  from_shop(id)
  o.try, o.again, o.taker, o.sent = try, o.again + 1, '-', false
  to_line(id, at_head(o), o, a[7])
  if tonumber(a[8]) > 0 then
    q.not_before = math.max(q.not_before, shard.now + tonumber(a[8]))
    q.fields['until'] = int(q.not_before)
  end
  changed.meta.queue, shard.queue = '1', true
  return { 'ok', 'waiting' }
end
