-- queue.lua: orders that wait for the shop, and whose turn it is. It comes before reserve.lua,
-- and after changes.lua in other scripts; every script that ends holds needs it. In manage and
-- settle its functions are made only where shard.queue is set or an operation of the queue is
-- asked for: others must look at shard.queue first.
--
-- The record of a hold that waits is held, in mode queued: the shop does not know of it, so its
-- deadline releases it. When it is sent, see send.lua, it gets the mode of its gate.
--
-- An order is "home try size again since number taker gate sent":
--   home   the edge where its request is open, or that came to have it; -: none
--   try    how often an edge was given the turn
--   size   bytes of p|id
--   again  how often the shop has put it off
--   since  ms by the shard's clock; when it began to wait
--   number  by which it came; below 0 where that is not known any more
--   taker  the edge that has the turn; -: it waits
--   gate   print of the gate that made it: another edge can send it with a gate of the same print
--   sent   1: the taker may have sent it, and no other edge may
-- An order that went to the shop at once has none: only its id is in KEYS[16].
--
-- uses changes.lua: CHANGED, MODE, STATE, changed, dirty
-- uses shard.lua: AT_SHOP_KEY, BEYOND_ARRAYS, DEADLINES_KEY, LINE_KEY, ORDERS_KEY, QUEUE_KEY, RECORDS_KEY, call, concat, int, match, records, shard

-- µs by which an order may leave late without the next one leaving later
local LATE = 20000
-- the score in KEYS[16] of what may have been sent
local SENT = 9e15
-- an order that no edge can send has this on its number in KEYS[14]: it stands behind all others there,
-- with a score above half of this
local ASIDE = 4000000000000000
-- the rate is that of so many seconds
local SECONDS = 10
-- ms for which an order counts as at the shop of which only its hold is known, if the shop decides
-- later: it may have answered long ago
local AT_SHOP_FOR = 20000
-- how many holds are looked at for such orders, those that end first
local HOLDS = 20000

local q -- what is known of the queue; nil: nothing was read
local orders = {} -- by id; false: there is none

-- number_of is a number that is kept; one that another client has damaged is 0
local function number_of(text)
  local n = tonumber(text or '0')
  return n and n > -1e17 and n < 1e17 and n or 0
end

local function load_queue_state()
  if q then return q end
  local v = call('HMGET', KEYS[QUEUE_KEY], 'next', 'bytes', 'paused', 'until', 's0', 's1', 's2', 's3', 's4', 's5', 's6', 's7', 's8', 's9', 'went')
  q = {
    next = number_of(v[1]), went = number_of(v[5 + SECONDS]), bytes = number_of(v[2]), paused = v[3] and true or false, not_before = number_of(v[4]),
    seconds = {}, waiting = call('ZCARD', KEYS[LINE_KEY]), at_shop = call('ZCARD', KEYS[AT_SHOP_KEY]),
    fields = {}, line = {}, no_line = {}, shop = {}, no_shop = {}, orders = {}, tell = {},
  }
  if call('HLEN', KEYS[ORDERS_KEY]) == 0 then q.bytes = 0 end -- it fails before the first write, should it be no hash
  for i = 1, SECONDS do q.seconds[i] = v[4 + i] or '0 0' end
  return q
end

local function parse_order(text)
  if not text then return false end
  local home, try, size, again, since, number, taker, gate, sent = match(text, '^(%S+) (%d+) (%d+) (%d+) (%d+) (%-?%d+) (%S+) (%S+) (%d)$')
  if not home then return false end
  return {
    home = home, try = number_of(try), size = number_of(size), again = number_of(again), since = number_of(since), number = number_of(number),
    taker = taker, gate = gate, sent = sent == '1',
  }
end

local function read_order(id)
  if orders[id] == nil then orders[id] = parse_order(call('HGET', KEYS[ORDERS_KEY], id)) end
  return orders[id]
end

local function write_order(id, o)
  orders[id] = o
  q.orders[id] = o.home .. ' ' .. int(o.try) .. ' ' .. int(o.size) .. ' ' .. int(o.again) .. ' ' .. int(o.since) .. ' ' .. int(o.number) .. ' ' .. o.taker .. ' ' .. o.gate ..
    (o.sent and ' 1' or ' 0')
end

-- left_lately returns how many orders left for the shop in the last full seconds, and how many
-- seconds these are since the first one: at most SECONDS
local function left_lately()
  local second = math.floor(shard.now / 1000)
  local sum, first = 0, second
  for i = 1, SECONDS do
    local at, n = match(q.seconds[i], '^(%d+) (%d+)$')
    at = number_of(at)
    if at < second and at > second - SECONDS then
      sum, first = sum + number_of(n), math.min(first, at)
    end
  end
  return sum, second - first
end

-- every_of is how many µs are between two orders, n of which go to the shop in per ms; 0: any
local function every_of(n, per)
  if n == 0 then return 0 end
  return math.max(math.ceil(per * 1000 / n), 1)
end

-- free_turns returns how many orders may leave for the shop now, and for how many ms none may
-- by the pace
local function free_turns(pace)
  if q.paused then return 0, 0 end
  if shard.now < q.not_before then return 0, q.not_before - shard.now end
  local free, us = math.max(pace.at_once - q.at_shop, 0), shard.now * 1000
  if pace.every == 0 then return free, 0 end
  local from = math.max(q.next, us - LATE)
  if from > us then return 0, math.ceil((from - us) / 1000) end
  return math.min(free, math.floor((us - from) / pace.every) + 1), 0
end

-- take_turn counts a turn: the next one is given later
local function take_turn(pace)
  if pace.every == 0 then return end
  q.next = math.max(q.next, shard.now * 1000 - LATE) + pace.every
  q.fields.next = int(q.next)
end

-- too_early returns for how many ms an order that has its turn may not go yet: turns that were given
-- one after the other may be used at the same time, by an edge that was cut off
local function too_early(every)
  local us = shard.now * 1000
  return every == 0 and 0 or math.max(math.ceil((q.went - us) / 1000), 0)
end

-- goes counts an order that goes to the shop
local function goes(every)
  if every > 0 then
    q.went = math.max(q.went, shard.now * 1000 - LATE) + every
    q.next = math.max(q.next, q.went)
    q.fields.went, q.fields.next = int(q.went), int(q.next)
  end
  local second = math.floor(shard.now / 1000)
  local i = second % SECONDS
  local at, n = match(q.seconds[i + 1], '^(%d+) (%d+)$')
  n = tonumber(at) == second and number_of(n) or 0
  q.seconds[i + 1] = int(second) .. ' ' .. int(n + 1)
  q.fields['s' .. i] = q.seconds[i + 1]
end

local function to_shop(id, score)
  if not q.shop[id] then q.at_shop = q.at_shop + 1 end
  q.shop[id], q.no_shop[id] = score, nil
end

local function from_shop(id)
  q.no_shop[id], q.shop[id] = true, nil
  q.at_shop = math.max(q.at_shop - 1, 0)
end

-- counts_at_shop reports whether an order counts as one that the shop has, or is about to get
local function counts_at_shop(id) return q.shop[id] or not q.no_shop[id] and call('ZSCORE', KEYS[AT_SHOP_KEY], id) end

local function from_line(id)
  q.no_line[id], q.line[id] = true, nil
  q.waiting = math.max(q.waiting - 1, 0)
end

-- stands_in_line reports whether an order has a place in the line
local function stands_in_line(id) return q.line[id] or not q.no_line[id] and call('ZSCORE', KEYS[LINE_KEY], id) end

-- count_shop counts the order of a held hold of which the line knows nothing. Without an id it counts
-- all, also those of this call, where no order has come to a queue yet: the sale was rebuilt, or its
-- gate has just got one.
local function count_shop(id, mode, since)
  if mode == 'response' then
    to_shop(id, SENT)
  elseif mode == 'backend' and since + AT_SHOP_FOR > shard.now then
    to_shop(id, since + AT_SHOP_FOR)
  end
  if id or shard.queue then return end
  local function count(other, r) -- a record, taken apart or not
    if type(r) == 'table' then
      if r[STATE] == 'held' then count_shop(other, r[MODE], r[CHANGED]) end
    elseif r then
      local changed_at, its_mode = match(r, '^held\t[^\t]*\t[^\t]*\t[^\t]*\t(%d+)\t(%a+)\t')
      if its_mode then count_shop(other, its_mode, number_of(changed_at)) end
    end
  end
  local ids = call('ZRANGE', KEYS[DEADLINES_KEY], 0, HOLDS - 1)
  for i = 1, #ids, 500 do
    for j, text in ipairs(call('HMGET', KEYS[RECORDS_KEY], unpack(ids, i, math.min(i + 499, #ids)))) do
      local other = ids[i + j - 1]
      if records[other] == nil then count(other, text) end
    end
  end
  for other, r in pairs(records) do count(other, r) end
end

-- tell notes what an edge is to be told when it asks for turns: whose turn it is, and with try
-- 0 what has left the line
local function tell(edge, id, try)
  local all = q.tell[edge]
  if not all then
    all = {}
    q.tell[edge] = all
  end
  all[#all + 1] = id .. ' ' .. int(try)
end

local function to_tell()
  for edge, all in pairs(q.tell) do
    local field, alive = 't|' .. edge, q.fields['e|' .. edge] or call('HGET', KEYS[QUEUE_KEY], 'e|' .. edge)
    if not alive or number_of(alive) > shard.now then -- one that has stopped does not ask
      local before = q.fields[field]
      if before == nil then before = call('HGET', KEYS[QUEUE_KEY], field) end
      q.fields[field] = (before or '') .. concat(all, ' ') .. ' '
    end
  end
end

local function set_bytes(n)
  q.bytes = math.max(n, 0)
  q.fields.bytes = int(q.bytes)
end

-- to_line lets an order wait
local function to_line(id, number, o, packed)
  q.line[id], q.no_line[id] = number, nil
  q.waiting = q.waiting + 1
  o.size = #packed
  write_order(id, o)
  q.orders['p|' .. id] = packed
  set_bytes(q.bytes + o.size)
end

-- at_head is the place of an order before all that came with a number of the journal; among
-- these the order in which they came
local function at_head(o) return o.number - BEYOND_ARRAYS end

-- before_numbers is the number of an order whose own is not known: by the time of its hold
local function before_numbers(ms) return ms - BEYOND_ARRAYS / 10 end

-- back_to_line lets an order wait again that had a turn
local function back_to_line(id, o)
  from_shop(id)
  o.taker = '-'
  q.line[id], q.no_line[id] = at_head(o), nil
  q.waiting = q.waiting + 1
  write_order(id, o)
end

-- put_aside lets no order wait behind one that no edge can send
local function put_aside(id, o)
  q.line[id] = (q.line[id] or number_of(call('ZSCORE', KEYS[LINE_KEY], id) or nil)) + ASIDE
  q.no_line[id] = nil
  q.fields['a|' .. o.gate] = '1'
  if o.home ~= '-' then q.fields['a|' .. o.home] = '1' end
end

-- aside returns how many orders no edge can send
local function aside() return call('ZCOUNT', KEYS[LINE_KEY], int(ASIDE / 2), '+inf') end

-- listed reports whether the keys have an order that waits, or has a turn, where it belongs
local function listed(id, o)
  if o.taker == '-' then return stands_in_line(id) end
  return counts_at_shop(id)
end

-- drop_rest drops what is left of an order that cannot be read any more
local function drop_rest(id)
  local size = call('HSTRLEN', KEYS[ORDERS_KEY], 'p|' .. id)
  if size > 0 then set_bytes(q.bytes - size) end
  q.orders[id], q.orders['p|' .. id] = false, false
  if stands_in_line(id) then from_line(id) end
end

-- drop_packed forgets what was to be sent
local function drop_packed(id, o)
  if o.size == 0 then return end
  set_bytes(q.bytes - o.size)
  o.size = 0
  q.orders['p|' .. id] = false
end

-- wait_again lets the order of a hold wait that Redis has lost: before all that came with a
-- number of the journal
local function wait_again(id, r, home, gate, packed)
  count_shop()
  drop_rest(id)
  if counts_at_shop(id) then from_shop(id) end
  local o = { home = home, try = 0, size = 0, again = 0, since = r[CHANGED], number = before_numbers(r[CHANGED]), taker = '-', gate = gate }
  to_line(id, at_head(o), o, packed)
  changed.meta.queue, shard.queue, dirty = '1', true, true
end

-- leave_queue forgets an order whose hold has ended, or is in doubt
local function leave_queue(id)
  load_queue_state()
  local o = read_order(id)
  if o then
    drop_packed(id, o)
    q.orders[id], orders[id] = false, false
    if o.taker == '-' then from_line(id) end
    if not o.sent and o.home ~= '-' then tell(o.home, id, 0) end
  elseif q.orders[id] == nil and call('HEXISTS', KEYS[ORDERS_KEY], id) == 1 then -- this call has not dropped it
    drop_rest(id)
  end
  if q.shop[id] or (not o or o.taker ~= '-') and counts_at_shop(id) then from_shop(id) end
end
