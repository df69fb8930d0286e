-- answer.lua: keep what the shop has answered to an order that has waited, until its buyer asks. All
-- answers of a sale together are bounded: the oldest make room. It stands alone: it moves no stock.
--
-- KEYS[1]  reply    string  the answer, encrypted; the key ends with the reservation's id
-- KEYS[2]  replies  zset    "size id" of each answer by ms of Redis's own time; when it is dropped
-- KEYS[3]  size     string  bytes of all of them
--
-- ARGV[1]  id      reservation id
-- ARGV[2]  answer  encrypted
-- ARGV[3]  keep    ms
-- ARGV[4]  most    bytes that all answers may take; -1: drop the answer, keep none
--
-- Returns { 1, dropped }  how many answers had to make room before their time
--         { 0, dropped }  it is not kept: it is too large, or too many small ones would have to go

-- how many answers one call drops at most
local DROPS = 500

local id, keep, most = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local size, under = #ARGV[2], string.sub(KEYS[1], 1, -#ARGV[1] - 1)
local now = redis.call('TIME')
now = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local sum, before = tonumber(redis.call('GET', KEYS[3]) or '0') or 0, redis.call('STRLEN', KEYS[1])
local first = redis.call('ZRANGE', KEYS[2], 0, DROPS - 1, 'WITHSCORES')

local function drop(member)
  if redis.call('ZREM', KEYS[2], member) == 0 then return end
  local n, other = string.match(member, '^(%d+) (.+)$')
  if not n then return end
  sum = sum - tonumber(n)
  redis.pcall('DEL', under .. other) -- it may be on its way to another node of a cluster, where it expires
end

if before > 0 then drop(string.format('%.0f %s', before, id)) end
local dropped = 0
for i = 1, #first, 2 do
  local over = tonumber(first[i + 1]) <= now
  if not over and (size > most or sum + size <= most) then break end
  if not over then dropped = dropped + 1 end
  drop(first[i])
end
if redis.call('ZCARD', KEYS[2]) == 0 then sum = 0 end
local kept = sum + size <= most
if kept then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', keep)
  redis.call('ZADD', KEYS[2], now + keep, string.format('%.0f %s', size, id))
  sum = sum + size
end
redis.call('SET', KEYS[3], string.format('%.0f', math.max(sum, 0)), 'KEEPTTL') -- another answer may be kept longer
for i = 2, 3 do
  if redis.call('PTTL', KEYS[i]) < keep then redis.call('PEXPIRE', KEYS[i], keep) end
end
return { kept and 1 or 0, dropped }
