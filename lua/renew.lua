-- renew.lua: begin a new life of a shard that is to be restored. Its current data is
-- kept as its previous life, and until rebuilt.lua every operation on the shard is refused. It is a
-- script of its own: nothing moves yet.
--
-- KEYS[…]   those of shard.lua: KEYS[1…18]
-- KEYS[19…] where each of them is kept, but for the queue, which ends
-- KEYS[1]   meta  hash  of the new life, before it begins: restoring, its epoch; no epoch and no
--                       seq; version, status paused, starts, ends, doc, schema; merging while
--                       there is a previous life: what has no record may be there; forgotten, deleted and what acts.lua has as they were
--
-- ARGV[1]  schema   the newest key schema that the caller understands
-- ARGV[2]  epoch    of the life that the caller has seen; 0: there was none. What has moved in it since
--                   is kept like the rest
-- ARGV[3]  began    1: the caller has seen that a restoration had begun; else 0
-- ARGV[4]  after    ms; the new epoch is later than this, and than that of any life before
-- ARGV[5]  version  of the sale in the new life
-- ARGV[6]  doc      the file, as canonical JSON
-- ARGV[7]  starts   ms
-- ARGV[8]  ends     ms
-- ARGV[9]  deleted  epoch of the last sale under this id that was deleted before the one that is restored; 0: none
--
-- Returns { 'ok', epoch }; { 'conflict' } another life has begun, or begins, since the caller
--         looked; { 'schema', schema }

-- as in shard.lua
local SCHEMA_OF_SALES = 4
-- of a shard
local SHARD_KEYS = 18

local meta = redis.call('HMGET', KEYS[1], 'epoch', 'restoring', 'schema', 'forgotten', 'deleted', 'act', 'acts', 'acts_done', 'next_act')
if tonumber(meta[3] or '0') > tonumber(ARGV[1]) then return { 'schema', tonumber(meta[3]) } end
local seen, began = tonumber(meta[1] or '0'), meta[2] and '1' or '0'
if seen ~= tonumber(ARGV[2]) or began ~= ARGV[3] then return { 'conflict' } end

local now = redis.call('TIME')
now = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local epoch = math.max(now, tonumber(ARGV[4]) + 1, seen + 1, tonumber(meta[2] or '0') + 1)
local previous = false
for i = 1, SHARD_KEYS do
  if meta[2] or i > 13 and i < SHARD_KEYS then
    redis.call('UNLINK', KEYS[i]) -- left by a restoration that was not finished, or the queue
  elseif redis.call('EXISTS', KEYS[i]) == 1 then
    redis.call('RENAME', KEYS[i], KEYS[SHARD_KEYS + i])
  end
  previous = previous or redis.call('EXISTS', KEYS[SHARD_KEYS + i]) == 1
end
if previous then redis.call('HSET', KEYS[1], 'merging', '1') end
redis.call('HSET', KEYS[1], 'restoring', string.format('%.0f', epoch), 'version', ARGV[5], 'status', 'paused', 'starts', ARGV[7], 'ends', ARGV[8],
  'doc', ARGV[6], 'schema', string.format('%.0f', math.max(tonumber(meta[3] or '0'), SCHEMA_OF_SALES)))
if meta[4] then redis.call('HSET', KEYS[1], 'forgotten', meta[4]) end
for i = 6, 9 do -- what is scheduled, see acts.lua
  if meta[i] then redis.call('HSET', KEYS[1], ({ [6] = 'act', [7] = 'acts', [8] = 'acts_done', [9] = 'next_act' })[i], meta[i]) end
end
local deleted = math.max(tonumber(meta[5] or '0'), tonumber(ARGV[9]))
if deleted > 0 then redis.call('HSET', KEYS[1], 'deleted', string.format('%.0f', deleted)) end
return { 'ok', epoch }
