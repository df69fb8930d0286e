-- trim.lua: drop the oldest entries of a shard's journal, each when all of its movements
-- may go. It stands alone: it moves no stock.
--
-- KEYS[…]  those of shard.lua, of which it uses meta and journal
-- KEYS[1]  meta      hash    seq; acked, the last movement that a ledger has, and acked_at, when it said so;
--                            sent and sent_at, the same of the outbox's receiver
-- KEYS[10] journal   stream
--
-- ARGV[1]  schema    the newest key schema that the caller understands
-- ARGV[2]  upto      the last movement that may go
-- ARGV[3]  least     how many of the newest movements stay, whatever is asked
-- ARGV[4]  ledger    1: only what a ledger has may go
-- ARGV[5]  patience  ms; the same where a ledger was heard of since, whichever edge calls; and only
--                    what the outbox's receiver has, where it has taken something since, or
--                    had all there was
--
-- Returns { 'ok', seq, gone } up to which movement it was allowed, and which is the last that is gone;
--         { 'no_sale' }; { 'schema', schema }

local meta = redis.call('HMGET', KEYS[1], 'seq', 'acked', 'acked_at', 'schema', 'sent', 'sent_at', 'clock', 'lead')
if not meta[1] then return { 'no_sale' } end
if tonumber(meta[4] or '0') > tonumber(ARGV[1]) then return { 'schema', tonumber(meta[4]) } end
local upto = math.min(tonumber(ARGV[2]), tonumber(meta[1]) - tonumber(ARGV[3]))
local now = redis.call('TIME')
now = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
now = math.max(now + tonumber(meta[8] or '0'), tonumber(meta[7] or '0')) -- the shard's clock
if ARGV[4] == '1' or meta[3] and tonumber(meta[3]) + tonumber(ARGV[5]) > now then
  upto = math.min(upto, tonumber(meta[2] or '0'))
end
if meta[6] and tonumber(meta[6]) + tonumber(ARGV[5]) > now then
  upto = math.min(upto, tonumber(meta[5] or '0'))
end
if upto <= 0 then return { 'ok', 0, 0 } end
redis.call('XTRIM', KEYS[10], 'MINID', string.format('%.0f-0', upto + 1))
local gone, left = upto, redis.call('XRANGE', KEYS[10], '-', '+', 'COUNT', 1)[1]
if left then
  local _, feeds = string.gsub(left[2][6] or '', '\n', '\n')
  gone = math.min(gone, tonumber(string.match(left[1], '^%d+')) - feeds - 1)
end
return { 'ok', upto, gone }
