-- restore.lua: restore a chunk of a shard's data, between renew.lua and rebuilt.lua. A
-- repeated chunk changes nothing. It is a script of its own: the journal gets one entry
-- at the end.
--
-- KEYS[…]  those of shard.lua
-- KEYS[1]  meta  hash  restoring, the epoch of the life that is being restored
--
-- ARGV[1]  epoch  of the life that the caller restores
-- ARGV[2]  place  of the key among KEYS: 2 to 9, 11 to 13, 18
-- ARGV[3…] pairs  field and value, or score and member
--
-- Returns { 'ok' }; { 'conflict' } another process restores the shard now

if redis.call('HGET', KEYS[1], 'restoring') ~= ARGV[1] then return { 'conflict' } end
local place = tonumber(ARGV[2])
local command = 'HSET'
if place >= 5 and place <= 8 then command = 'ZADD' end
for i = 3, #ARGV, 1000 do
  redis.call(command, KEYS[place], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
return { 'ok' }
