-- waits.lua: what reserve.lua, which has no operations, needs of queue.lua. It comes after
-- queue.lua, in calls of a gate that has a queue.
--
-- uses queue.lua: SENT, count_shop, every_of, free_turns, goes, load_queue_state, q, take_turn, to_line, to_shop
-- uses shard.lua: AT_SHOP_KEY, LINE_KEY, ORDERS_KEY, QUEUE_KEY, int, shard

local for_reserve = {
  load = function()
    local known = q
    load_queue_state()
    if not known then count_shop() end
    return q
  end,
  free = free_turns,
  every = every_of,
  -- wait lets a new order wait
  wait = function(id, number, o, packed)
    to_line(id, number, { home = o.home, try = 0, size = 0, again = 0, since = shard.now, number = number, taker = '-', gate = o.gate }, packed)
  end,
  -- go sends a new order to the shop at once; one that is told again has gone before the fence
  go = function(id, o)
    if o.told then return count_shop(id, o.as, shard.now) end
    take_turn(o)
    goes(o.every)
    to_shop(id, SENT)
  end,
  -- write returns false where there was nothing to decide
  write = function(many)
    if not q then return false end
    local line, shop, packed, fields = {}, {}, {}, {}
    for id, number in pairs(q.line) do line[#line + 1], line[#line + 2] = number, id end
    for id, score in pairs(q.shop) do shop[#shop + 1], shop[#shop + 2] = int(score), id end
    for field, text in pairs(q.orders) do packed[#packed + 1], packed[#packed + 2] = field, text end
    for field, text in pairs(q.fields) do fields[#fields + 1], fields[#fields + 2] = field, text end
    many('ZADD', KEYS[LINE_KEY], line)
    many('HSET', KEYS[ORDERS_KEY], packed)
    many('ZADD', KEYS[AT_SHOP_KEY], shop)
    many('HSET', KEYS[QUEUE_KEY], fields)
    return true
  end,
}
