-- lease.lua: one caller at a time has a name, until it gives it up or does not renew it in
-- time. It touches no shard.
--
-- KEYS[1]  lease  string  the token of the caller that has the name
--
-- ARGV[1]  does   acquire | renew | give_up
-- ARGV[2]  token  the caller's, of this lease alone
-- ARGV[3]  ms     until when it has the name, from now
--
-- Returns { 1 }     the caller has the name, or has given it up
--         { 0 }     another caller has it, or none has

local does, token, ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local holder = redis.call('GET', KEYS[1])
if holder ~= token and (does ~= 'acquire' or holder) then return { 0 } end
if does == 'give_up' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], token, 'PX', ms)
end
return { 1 }
