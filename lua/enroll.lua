-- enroll.lua: agree with the other edges on one secret, or learn that this edge
-- has another one. Edges whose keys include the registered one belong together.
--
-- KEYS[1]  keys  hash    signing → kid of the key that signs; secret:<kid> → the identity
--                        secret, sealed for that key; public:<kid> → JWK
--
-- ARGV[1]  n     number of this edge's keys, the one that signs first, then for each:
--                kid, sealed identity secret (used when no edge has enrolled), JWK or ''
--
-- Returns { 'ok', kid, sealed }    the identity secret, sealed for this edge's key kid
--         { 'foreign', kid }       the others sign with a key that this edge does not know
--         { 'lost', kid }          the identity secret is gone from Redis

local n = tonumber(ARGV[1])
local registered = redis.call('HGET', KEYS[1], 'signing')
local known, sealed, sealed_for = not registered, false, false
local first_has_secret = false
for i = 0, n - 1 do
  local kid = ARGV[2 + 3 * i]
  if kid == registered then known = true end
  local s = redis.call('HGET', KEYS[1], 'secret:' .. kid)
  if s and i == 0 then first_has_secret = true end
  if s and not sealed then sealed, sealed_for = s, kid end
end
if not known then return { 'foreign', registered } end
if registered and not sealed then return { 'lost', registered } end

for i = 0, n - 1 do
  local kid, own, jwk = ARGV[2 + 3 * i], ARGV[3 + 3 * i], ARGV[4 + 3 * i]
  if not sealed then redis.call('HSET', KEYS[1], 'secret:' .. kid, own) end
  if jwk ~= '' then redis.call('HSET', KEYS[1], 'public:' .. kid, jwk) end
end
if not sealed then
  sealed, sealed_for, first_has_secret = ARGV[3], ARGV[2], true
end
-- the signing key changes only when an edge that knows only that key finds the secret
if first_has_secret then redis.call('HSET', KEYS[1], 'signing', ARGV[2]) end
return { 'ok', sealed_for, sealed }
