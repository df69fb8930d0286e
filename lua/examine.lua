-- examine.lua: read values of a shard by name, all at one moment: that of the journal
-- entry whose number the call returns. It changes nothing.
--
-- a[1]  part   what the names are of: cell | limit | record | binding | adjustment | return | unpaid, or one of
--              deadlines | in_doubt | unbacked | tombstones
-- a[2]  n      number of names, then the names
--
-- Returns { 'ok', epoch, time, ends, value, … }: the life of the shard, Redis's own time and the end of
-- the sale, in ms; for each name what it has there as it is kept, of a sorted set the score; nil: nothing
--
-- uses changes.lua: operations, part_keys
-- uses shard.lua: call, shard, time

local in_sorted_set = { deadlines = true, in_doubt = true, unbacked = true, tombstones = true }

function operations.examine(a)
  local part = a[1]
  local out = { 'ok', shard.epoch, time, shard.ends }
  for i = 1, tonumber(a[2]) do
    local name = a[2 + i]
    if in_sorted_set[part] then
      out[4 + i] = call('ZSCORE', KEYS[part_keys[part]], name)
    else
      out[4 + i] = call('HGET', KEYS[part_keys[part]], name)
    end
  end
  return out
end
