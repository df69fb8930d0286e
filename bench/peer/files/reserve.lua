-- Get, check, decrement, with a purchase limit: what a shop writes when it moves its
-- stock to Redis. KEYS: stock, bought. ARGV: sku, quantity, buyer, limit.
local left = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if not left then return -1 end
local quantity = tonumber(ARGV[2])
if tonumber(redis.call('HGET', KEYS[2], ARGV[3]) or '0') + quantity > tonumber(ARGV[4]) then return -2 end
if left < quantity then return -3 end
redis.call('HINCRBY', KEYS[2], ARGV[3], quantity)
return redis.call('HINCRBY', KEYS[1], ARGV[1], -quantity)
