-- queue.lua: orders that wait for the shop, and whose turn it is. It comes before reserve.lua,
-- and after changes.lua in other scripts; every script that ends holds needs it.
--
-- The record of a hold that waits is held, in mode queued: the shop does not know of it, so its
-- deadline releases it. When it is sent, see send.lua, it gets the mode of its gate.
--
-- An order is "home try size again since taker gate sent":
--   home   the edge where its request is open, or that came to have it; -: none
--   try    how often an edge was given the turn
--   size   bytes of p|id
--   again  how often the shop has put it off
--   since  ms by the shard's clock; when it began to wait
--   taker  the edge that has the turn; -: it waits
--   gate   print of the gate that made it: only an edge that has the same can send it
--   sent   1: the taker may have sent it, and no other edge may
-- An order that went to the shop at once has none: only its id is in KEYS[16].

-- µs by which an order may leave late without the next one leaving later
local LATE = 20000
-- the score in KEYS[16] of what may have been sent
local SENT = 9e15
-- the rate is that of so many seconds
local SECONDS = 10

local q -- what is known of the queue; nil: nothing was read
local orders = {} -- by id; false: there is none

local function load_queue_state()
  if q then return q end
  local v = call('HMGET', KEYS[17], 'next', 'bytes', 'paused', 'until', 's0', 's1', 's2', 's3', 's4', 's5', 's6', 's7', 's8', 's9')
  q = {
    next = tonumber(v[1] or '0'), bytes = tonumber(v[2] or '0'), paused = v[3] and true or false, not_before = tonumber(v[4] or '0'),
    seconds = {}, waiting = call('ZCARD', KEYS[14]), at_shop = call('ZCARD', KEYS[16]),
    fields = {}, line = {}, no_line = {}, shop = {}, no_shop = {}, orders = {}, tell = {},
  }
  call('HLEN', KEYS[15]) -- fails before the first write, should it be no hash
  for i = 1, SECONDS do q.seconds[i] = v[4 + i] or '0 0' end
  return q
end

local function parse_order(text)
  if not text then return false end
  local home, try, size, again, since, taker, gate, sent = match(text, '^(%S+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (%d)$')
  if not home then return false end
  return { home = home, try = tonumber(try), size = tonumber(size), again = tonumber(again), since = tonumber(since), taker = taker, gate = gate, sent = sent == '1' }
end

local function read_order(id)
  if orders[id] == nil then orders[id] = parse_order(call('HGET', KEYS[15], id)) end
  return orders[id]
end

local function write_order(id, o)
  orders[id] = o
  q.orders[id] = o.home .. ' ' .. int(o.try) .. ' ' .. int(o.size) .. ' ' .. int(o.again) .. ' ' .. int(o.since) .. ' ' .. o.taker .. ' ' .. o.gate ..
    (o.sent and ' 1' or ' 0')
end

-- left_lately returns how many orders left for the shop in the last full seconds, and how many
-- seconds these are since the first one: at most SECONDS
local function left_lately()
  local second = math.floor(shard.now / 1000)
  local sum, first = 0, second
  for i = 1, SECONDS do
    local at, n = match(q.seconds[i], '^(%d+) (%d+)$')
    at = tonumber(at)
    if at < second and at > second - SECONDS then
      sum, first = sum + tonumber(n), math.min(first, at)
    end
  end
  return sum, second - first
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

-- take_turn counts an order that leaves for the shop
local function take_turn(pace)
  if pace.every > 0 then
    q.next = math.max(q.next, shard.now * 1000 - LATE) + pace.every
    q.fields.next = int(q.next)
  end
  local second = math.floor(shard.now / 1000)
  local i = second % SECONDS
  local at, n = match(q.seconds[i + 1], '^(%d+) (%d+)$')
  if tonumber(at) ~= second then n = 0 end
  q.seconds[i + 1] = int(second) .. ' ' .. int(n + 1)
  q.fields['s' .. i] = q.seconds[i + 1]
end

local function to_shop(id, score)
  if not q.shop[id] then q.at_shop = q.at_shop + 1 end
  q.shop[id], q.no_shop[id] = score, nil
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
    local field = 't|' .. edge
    local before = q.fields[field]
    if before == nil then before = call('HGET', KEYS[17], field) end
    q.fields[field] = (before or '') .. concat(all, ' ') .. ' '
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

local function from_line(id)
  q.no_line[id], q.line[id] = true, nil
  q.waiting = math.max(q.waiting - 1, 0)
end

-- drop_packed forgets what was to be sent
local function drop_packed(id, o)
  if o.size == 0 then return end
  set_bytes(q.bytes - o.size)
  o.size = 0
  q.orders['p|' .. id] = false
end

-- leave_queue forgets an order whose hold has ended, or is in doubt
local function leave_queue(id)
  if not shard.queue then return end
  load_queue_state()
  local o = read_order(id)
  if o then
    drop_packed(id, o)
    q.orders[id], orders[id] = false, false
    if o.taker == '-' then from_line(id) end
    if not o.sent and o.home ~= '-' then tell(o.home, id, 0) end
  end
  if q.shop[id] or (not o or o.taker ~= '-') and call('ZSCORE', KEYS[16], id) then
    q.no_shop[id], q.shop[id] = true, nil
    q.at_shop = math.max(q.at_shop - 1, 0)
  end
end

-- for_reserve are the functions that reserve.lua needs, which has no operations
local for_reserve = {
  load = load_queue_state,
  free = free_turns,
  -- wait lets a new order wait
  wait = function(id, number, o, packed)
    to_line(id, number, { home = o.home, try = 0, size = 0, again = 0, since = shard.now, taker = '-', gate = o.gate }, packed)
  end,
  -- go sends a new order to the shop at once
  go = function(id, o)
    take_turn(o)
    to_shop(id, SENT)
  end,
  write = function(many)
    local line, shop, packed, fields = {}, {}, {}, {}
    for id, number in pairs(q.line) do line[#line + 1], line[#line + 2] = number, id end
    for id, score in pairs(q.shop) do shop[#shop + 1], shop[#shop + 2] = int(score), id end
    for field, text in pairs(q.orders) do packed[#packed + 1], packed[#packed + 2] = field, text end
    for field, text in pairs(q.fields) do fields[#fields + 1], fields[#fields + 2] = field, text end
    many('ZADD', KEYS[14], line)
    many('HSET', KEYS[15], packed)
    many('ZADD', KEYS[16], shop)
    many('HSET', KEYS[17], fields)
  end,
}
