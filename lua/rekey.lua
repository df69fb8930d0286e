-- rekey.lua: register another signing key in the place of one that is lost, with the identity
-- secret sealed for it. The lost key's public half stays, for tokens that it has signed.
--
-- KEYS[1]  keys    hash    as in enroll.lua
--
-- ARGV[1]  lost    kid that is registered now
-- ARGV[2]  kid     of the new key
-- ARGV[3]  sealed  the identity secret, sealed for the new key
-- ARGV[4]  jwk     its public half, or ''
--
-- Returns { 'ok' } (the same again changes nothing) { 'conflict', kid } another key is registered

local registered = redis.call('HGET', KEYS[1], 'signing')
if registered == ARGV[2] then return { 'ok' } end
if registered ~= ARGV[1] then return { 'conflict', registered or '' } end
local secrets = {}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  -- they are sealed for keys that this edge does not have, or hold another secret than the new one
  if string.sub(field, 1, 7) == 'secret:' then secrets[#secrets + 1] = field end
end
if #secrets > 0 then redis.call('HDEL', KEYS[1], unpack(secrets)) end
redis.call('HSET', KEYS[1], 'secret:' .. ARGV[2], ARGV[3], 'signing', ARGV[2])
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'public:' .. ARGV[2], ARGV[4]) end
return { 'ok' }
