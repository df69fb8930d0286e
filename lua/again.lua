-- again.lua: the shop has said that an order is to come later. It waits again, before all
-- others.
--
-- a[1]  id       reservation id
-- a[2]  edge     the caller, which has sent it
-- a[3]  longest  ms that it may wait
-- a[4]  margin   as in reserve.lua
-- a[5]  gate     as in queue.lua
-- a[6]  packed   what is to be sent
-- a[7]  later    ms for which no order goes to the shop
-- a[8]  most     how often it may be put off
--
-- Returns { 'ok', state }, also when it waits already
--         { 'too_many', times }  it was put off as often as it may be
--         { 'conflict', state } { 'not_found' } { 'restoring' }

reads.again = want_reservation

function operations.again(a)
  local id, edge = a[1], a[2]
  local r = read_record(id)
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] ~= 'held' then return { 'conflict', r[STATE] } end
  load_queue_state()
  local o = read_order(id)
  if r[MODE] == 'queued' then
    -- told again after a fence that has lost the order, and not that it waits
    if not o or not listed(id, o) then wait_again(id, r, edge, a[5], a[6]) end
    return { 'ok', 'waiting' }
  end
  o = o or { home = edge, try = 0, size = 0, again = 0, since = shard.now, number = before_numbers(r[CHANGED]), taker = edge, gate = a[5] }
  if o.taker ~= edge then return { 'conflict', 'held' } end
  if o.again >= tonumber(a[8]) then return { 'too_many', o.again } end
  local deadline = shard.now + tonumber(a[3])
  r[MODE], r[DEADLINE], r[EXP] = 'queued', deadline, time + tonumber(a[3]) - tonumber(a[4])
  r[CREATED], r[CHANGED] = time, shard.now
  index(id, 'held', deadline)
  write_record(id, r)
  write_journal('extended', id, 'held', '', r[BUYER], 'again', text_of(id))
  q.no_shop[id], q.shop[id] = true, nil
  q.at_shop = math.max(q.at_shop - 1, 0)
  o.again, o.taker, o.sent = o.again + 1, '-', false
  to_line(id, at_head(o), o, a[6])
  if tonumber(a[7]) > 0 then
    q.not_before = math.max(q.not_before, shard.now + tonumber(a[7]))
    q.fields['until'] = int(q.not_before)
  end
  changed.meta.queue, shard.queue = '1', true
  return { 'ok', 'waiting' }
end
