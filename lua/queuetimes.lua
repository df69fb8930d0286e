-- queuetimes.lua: the times of the queue where a lead of the shard's clock ends. align.lua and
-- expire.lua need it.
--
-- uses queue.lua: SECONDS, load_queue_state, number_of, q, read_order, write_order
-- uses shard.lua: AT_SHOP_KEY, QUEUE_KEY, call, find, int, shard

-- move_times moves the times of the queue where the shard's clock goes back by so many ms, because a
-- lead ends: else no order would leave before the clock has caught up
local function move_times(ms)
  if not shard.queue then return end
  load_queue_state()
  if q.next > 0 then
    q.next = q.next - ms * 1000
    q.fields.next = int(q.next)
  end
  if q.went > 0 then
    q.went = q.went - ms * 1000
    q.fields.went = int(q.went)
  end
  if q.not_before > 0 then
    q.not_before = q.not_before - ms
    q.fields['until'] = int(q.not_before)
  end
  for i = 1, SECONDS do q.seconds[i], q.fields['s' .. i - 1] = '0 0', false end
  local fields = call('HGETALL', KEYS[QUEUE_KEY])
  for i = 1, #fields, 2 do
    if find(fields[i], '^e|') then q.fields[fields[i]] = int(number_of(fields[i + 1]) - ms) end
  end
end

-- move_order is the same for one order, which waits or has a turn
local function move_order(id, ms)
  local o = shard.queue and read_order(id)
  if not o then return end
  o.since = math.max(o.since - ms, 0)
  write_order(id, o)
  local ends = o.taker ~= '-' and not o.sent and number_of(call('ZSCORE', KEYS[AT_SHOP_KEY], id) or nil)
  if ends and ends > 0 then q.shop[id] = ends - ms end
end
