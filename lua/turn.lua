-- turn.lua: an edge asks which orders it may send to the shop now. Turns are given in the order in
-- which orders came, whichever edge asks: each to the edge where its request is open, or where
-- that has stopped to one that has its gate, first to the one that asks. An edge that does not come in
-- time loses the turn. An order that no edge can send is put aside until one can: it does not stop
-- what is behind it.
--
-- a[1]  edge     the caller
-- a[2]  lease    ms: for how long a turn lasts, and the caller counts as alive
-- a[3]  n        at most so many orders go to the shop in
-- a[4]  per      ms; n 0: any number
-- a[5]  at_once  at most so many are at the shop
-- a[6]  most     at most so many turns in this call
-- a[7]  gates    prints of the gates that the caller has, with a space between two
--
-- Returns { 'ok', waiting, at_shop, wait, turns, id, try, … }: how many orders wait and are at the
--         shop; ms until the pace lets the next one go; how many turns were given and not used yet;
--         then the turns of the caller, in order. try 0: it has left the line, and this edge has
--         not sent it. id -: so many orders were put aside by this call
--         { 'restoring' }
--
-- uses asked.lua: sure_time
-- uses changes.lua: CREATED, STATE, dirty, operations, read_record
-- uses queue.lua: ASIDE, SENT, back_to_line, drop_rest, every_of, free_turns, from_line, from_shop, load_queue_state, number_of, put_aside, q, read_order, take_turn, tell, to_shop, write_order
-- uses shard.lua: AT_SHOP_KEY, LINE_KEY, META_KEY, QUEUE_KEY, call, find, int, match, shard
-- uses states.lua: change_state

-- how many orders one call gives away or puts aside at most
local FAR = 1000
-- how many of those that were put aside are looked at
local ALL_ASIDE = 20000
-- µs: an edge that was silent is told no more of the turns that it has got than can be used in this time
local BACKLOG = 200000

-- first_of is the number with which a term of this server began; beyond all where it is not
-- known any more
local function first_of(number)
  for term in string.gmatch(call('HGET', KEYS[META_KEY], 'terms') or '', '%S+') do
    local n, first = match(term, '^%d+:(%d+):%x+:(%d+)$')
    if n == number then return tonumber(first) end
  end
  return math.huge
end

-- doubt_lost puts in doubt what edges may have sent that a fence has waited for in vain: what they
-- told this server's predecessor may be lost. That is what came before the term that the fence has
-- begun, whatever the clocks of both servers say, or was told again until the fence had ended. Where
-- fence.lua knows that they have sent nothing that waits here, it is only what they have sent as far as
-- this server has heard. It returns whether there may be more.
local function doubt_lost(fence, lease, most)
  local absent, heard, newest, found = {}, {}, 0, 0
  local number, ended = match(fence, '^(%d+) %d+ (%d+)')
  local first = first_of(number)
  ended = number_of(ended)
  for edge in string.gmatch(call('HGET', KEYS[META_KEY], 'absent') or '', '%d+ (%S+)') do absent[edge] = true end
  -- sure says that no lost edge had a turn of this edge's orders: it came itself, and was alive
  local function sure(edge)
    return not absent[edge] and heard[edge] and heard[edge] > newest - lease / 2
  end
  local unsent = call('HGET', KEYS[META_KEY], 'unsent') == match(fence, '^%d+ %d+')
  -- lost reports whether a lost edge may have sent an order
  local function lost(o)
    if unsent then return o.sent and absent[o.taker] end
    return absent[o.taker] or not sure(o.taker == '-' and o.home or o.taker)
  end
  if next(absent) then
    local fields = call('HGETALL', KEYS[QUEUE_KEY])
    for i = 1, #fields, 2 do
      local edge = match(fields[i], '^e|(.*)$')
      if edge then
        heard[edge] = number_of(fields[i + 1])
        newest = math.max(newest, heard[edge])
      end
    end
    for _, key in ipairs({ KEYS[LINE_KEY], KEYS[AT_SHOP_KEY] }) do
      for _, id in ipairs(call('ZRANGE', key, 0, -1)) do
        local o = read_order(id)
        local r = o and lost(o) and read_record(id)
        if r and r[STATE] == 'held' and (o.number < first or r[CREATED] <= ended) then
          if found == most then return true end
          found = found + 1
          change_state(id, r, 'in_doubt', 'its edge was lost')
        end
      end
    end
  end
  q.fields.fence = fence
  return false
end

function operations.turn(a)
  local edge, lease, most = a[1], tonumber(a[2]), tonumber(a[6])
  if shard.merging then return { 'restoring' } end
  if not shard.exists then return { 'ok', 0, 0, 0, 0 } end -- an edge has not heard yet that it is gone
  load_queue_state()
  -- a caller that cannot tell the time ends no turns, and does not take a step into the clock
  if sure_time == 0 then return { 'ok', q.waiting, q.at_shop, 1, 1 } end
  dirty = true
  local pace = { every = every_of(tonumber(a[3]), tonumber(a[4])), at_once = tonumber(a[5]) }
  local until_when = shard.now + lease

  local fenced = call('HGET', KEYS[META_KEY], 'fenced') or ''
  if fenced ~= (call('HGET', KEYS[QUEUE_KEY], 'fence') or '') and doubt_lost(fenced, lease, most) then return { 'ok', q.waiting, q.at_shop, 1, 1 } end
  q.fields['e|' .. edge], q.fields['g|' .. edge] = int(until_when), a[7]
  local turns = call('ZCOUNT', KEYS[AT_SHOP_KEY], '-inf', '(' .. int(SENT))

  local alive, can, told = { [edge] = true }, {}, {}
  for print in string.gmatch(a[7], '%S+') do can[print] = true end
  local function lives(home)
    if alive[home] == nil then
      local heard = home ~= '-' and call('HGET', KEYS[QUEUE_KEY], 'e|' .. home)
      alive[home] = heard and tonumber(heard) > shard.now or false
      if heard and not alive[home] then
        for _, field in ipairs({ 'e|', 't|', 'g|' }) do q.fields[field .. home] = false end
      end
    end
    return alive[home]
  end
  local others -- edges that live, with the prints of their gates; nil: they were not read
  local function other_with(print)
    if not others then
      others = {}
      local fields = call('HGETALL', KEYS[QUEUE_KEY])
      for i = 1, #fields, 2 do
        local other = match(fields[i], '^g|(.*)$')
        if other and other ~= edge and lives(other) then others[#others + 1] = { other, ' ' .. fields[i + 1] .. ' ' } end
      end
      table.sort(others, function(x, y) return x[1] < y[1] end)
    end
    for _, other in ipairs(others) do
      if find(other[2], ' ' .. print .. ' ', 1, true) then return other[1] end
    end
  end
  local function give(id, o)
    local to = lives(o.home) and o.home or can[o.gate] and edge or other_with(o.gate)
    if not to then return false end
    to_shop(id, until_when)
    turns = turns + 1
    o.taker, o.try = to, o.try + 1
    write_order(id, o)
    if to == edge then
      told[#told + 1], told[#told + 2] = id, o.try
    else
      tell(to, id, o.try)
    end
    return true
  end

  -- what calls of other edges have given it. Of turns that it comes too late for others wait on.
  local room = pace.every == 0 and math.huge or math.floor(BACKLOG / pace.every) + 1
  for id, try in string.gmatch(call('HGET', KEYS[QUEUE_KEY], 't|' .. edge) or '', '(%S+) (%d+) ') do
    local o = read_order(id)
    local has = o and o.taker == edge and o.try == tonumber(try)
    if has and not o.sent and room == 0 then
      o.try = o.try - 1 -- the caller has not heard of it
      back_to_line(id, o)
      turns = turns - 1
    elseif try == '0' or has then
      told[#told + 1], told[#told + 2] = id, tonumber(try)
      room = has and room - 1 or room
    end
  end
  q.fields['t|' .. edge] = false
  -- turns that are over: they are given again as those of the line are
  local over = {}
  for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[AT_SHOP_KEY], '-inf', int(shard.now), 'LIMIT', 0, most)) do
    local o = read_order(id)
    if o and not o.sent and o.taker ~= '-' then
      back_to_line(id, o)
      over[#over + 1] = id
      turns = turns - 1
    elseif not o then
      if not q.no_shop[id] then from_shop(id) end -- else this call has ended it
      turns = turns - 1
    end
  end
  table.sort(over, function(a, b) return q.line[a] < q.line[b] or q.line[a] == q.line[b] and a < b end)
  -- what was put aside, and can be sent now
  local flags = { 'a|' .. edge }
  for print in pairs(can) do flags[#flags + 1] = 'a|' .. print end
  local flagged = false
  for _, flag in ipairs(call('HMGET', KEYS[QUEUE_KEY], unpack(flags))) do flagged = flagged or flag end
  if flagged then
    local all = call('ZRANGEBYSCORE', KEYS[LINE_KEY], int(ASIDE / 2), '+inf', 'WITHSCORES', 'LIMIT', 0, ALL_ASIDE)
    for i = 1, #all, 2 do
      local o = read_order(all[i])
      if o and o.taker == '-' and (o.home == edge or can[o.gate]) then q.line[all[i]] = tonumber(all[i + 1]) - ASIDE end
    end
    if #all < 2 * ALL_ASIDE then
      for _, flag in ipairs(flags) do q.fields[flag] = false end
    end
  end
  -- the line
  local skipped = 0
  local free, wait = free_turns(pace)
  free = math.min(free, most)
  local function take(id)
    local o = free > 0 and read_order(id)
    if o and o.taker == '-' and give(id, o) then
      from_line(id)
      take_turn(pace)
      free = free - 1
    elseif o and o.taker == '-' then
      put_aside(id, o)
      skipped = skipped + 1
    elseif o == false and free > 0 and not q.no_line[id] then
      drop_rest(id) -- its order is lost: edges let it wait again, see rejoin.lua
    end
  end
  for _, id in ipairs(over) do take(id) end
  local from = 0
  while free > 0 and from < FAR do
    local page = call('ZRANGEBYSCORE', KEYS[LINE_KEY], '-inf', '(' .. int(ASIDE / 2), 'LIMIT', from, 100)
    for _, id in ipairs(page) do take(id) end
    if #page < 100 then break end
    from = from + 100
  end
  if wait == 0 then
    local _, later = free_turns(pace)
    wait = later
  end
  local answer = { 'ok', q.waiting, q.at_shop, wait, turns }
  if skipped > 0 then answer[6], answer[7] = '-', skipped end
  for _, word in ipairs(told) do answer[#answer + 1] = word end
  return answer
end
