-- notice.lua: what operators are told, once over all edges, and what waits to be sent to them. It touches no shard.
--
-- KEYS[1]  told     hash  what a notice is about → the state that was told last
-- KEYS[2]  waiting  zset  "seq ms notice" by seq; ms by Redis's own time
-- KEYS[3]  state    hash  seq → number of the last notice; sending → the last one of the message that is being sent;
--                         lost → notices that found no room since the last message; with → the same, in the message that is
--                         being sent
--
-- ARGV[1]  does   raise | take | sent | refused
-- ARGV[2]  keep   ms for which the keys are kept without a change
-- of raise:
-- ARGV[3]  about
-- ARGV[4]  from   the state that the caller knows as told; '': none
-- ARGV[5]  to     the new state; '': none
-- ARGV[6]  text   the notice; '': the state is noted, and nothing is told
-- ARGV[7]  most   how many notices may wait
-- of take:
-- ARGV[3]  group  ms for which the oldest notice waits for others that go with it
-- ARGV[4]  most   notices of a message
-- ARGV[5]  bytes  of a message, unless its first notice alone has more
-- ARGV[6]  old    ms after which a notice is news no more, and counts as lost; 0: never
-- of sent, refused:
-- ARGV[3]  last   number of the last notice of the message
--
-- Returns { 1 } raised, sent or refused; { 0 } another edge has told it, or has sent the message
--         { waiting, ms, lost, notice, … } of take: how many wait, for how long the oldest one does, how many found no room, and the
--         message, which stays the same until it is sent or refused; no notice: it is too early

local does, keep, sending = ARGV[1], ARGV[2], tonumber(redis.call('HGET', KEYS[3], 'sending') or 0)
local now = redis.call('TIME')
now = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local function number_of(field) return tonumber(redis.call('HGET', KEYS[3], field) or 0) end
local function int(n) return string.format('%.0f', n) end
local function kept(reply)
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], keep) end
  return reply
end

if does == 'raise' then
  local about, from, to, text, most = ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
  if (redis.call('HGET', KEYS[1], about) or '') ~= from then return { 0 } end
  local seq, lost = number_of('seq') + 1, number_of('lost')
  local over = redis.call('ZCARD', KEYS[2]) + 1 - most
  if to == '' then redis.call('HDEL', KEYS[1], about) else redis.call('HSET', KEYS[1], about, to) end
  if text == '' then return kept({ 1 }) end
  redis.call('ZADD', KEYS[2], seq, int(seq) .. ' ' .. int(now) .. ' ' .. text)
  if over > 0 then -- the oldest ones that are not being sent
    local drop = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. int(sending), '+inf', 'LIMIT', 0, over)
    for i = 1, #drop do redis.call('ZREM', KEYS[2], drop[i]) end
    lost = lost + #drop
  end
  redis.call('HSET', KEYS[3], 'seq', int(seq), 'lost', int(lost))
  return kept({ 1 })
end

if does == 'take' then
  local group, most, bytes, old = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
  local waiting, first, stale = redis.call('ZCARD', KEYS[2]), redis.call('ZRANGE', KEYS[2], 0, most - 1), 0
  local function age_of(notice) return notice and math.max(now - tonumber(string.match(notice, '^%d+ (%d+) ')), 0) or 0 end
  while sending == 0 and old > 0 and age_of(first[1]) > old do
    redis.call('ZREM', KEYS[2], table.remove(first, 1))
    stale = stale + 1
  end
  if stale > 0 then redis.call('HINCRBY', KEYS[3], 'lost', stale) end
  waiting = waiting - stale
  if not first[1] then return { waiting, 0, 0 } end
  local age = age_of(first[1])
  if sending == 0 and age < group and waiting < most then return { waiting, age, 0 } end
  local reply, size, last = { waiting, age, 0 }, 0, 0
  for i = 1, #first do
    local seq = tonumber(string.match(first[i], '^(%d+) '))
    size = size + #first[i]
    if sending > 0 and seq > sending or sending == 0 and i > 1 and size > bytes then break end
    reply[#reply + 1], last = first[i], seq
  end
  if sending == 0 then
    redis.call('HSET', KEYS[3], 'sending', int(last), 'with', int(number_of('lost')), 'lost', '0')
    kept(reply)
  end
  reply[3] = number_of('with')
  return reply
end

local last = tonumber(ARGV[3])
if sending ~= last then return { 0 } end
local lost = number_of('lost')
local gone = redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', int(last))
if does == 'refused' then lost = lost + gone + number_of('with') end
redis.call('HSET', KEYS[3], 'lost', int(lost))
redis.call('HDEL', KEYS[3], 'sending', 'with')
return kept({ 1 })
