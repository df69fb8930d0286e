-- lapse.lua: drop the counters of unpaid holds in which nothing counts any more, those
-- of identities that never return. No key of a shard has a time to live.
--
-- a[1]  cursor  where to go on; 0: at the beginning
-- a[2]  most    about how many counters to look at in this call
-- a[3]  within  ms for which a hold counts that ended unpaid or in doubt
--
-- Returns { 'ok', cursor, dropped }; cursor 0: all have been looked at
--
-- uses changes.lua: changed, dirty, operations
-- uses shard.lua: UNPAID_KEY, call, shard
-- uses states.lua: unpaid
-- uses unpaid.lua: counting, parse_unpaid

function operations.lapse(a)
  local page = call('HSCAN', KEYS[UNPAID_KEY], a[1], 'COUNT', a[2])
  local before, dropped = shard.now - tonumber(a[3]), 0
  for i = 1, #page[2], 2 do
    local field = page[2][i]
    local c = unpaid[field] or parse_unpaid(page[2][i + 1])
    if c.held == 0 and counting(c, before) == 0 then
      unpaid[field] = { held = 0 }
      changed.unpaid[field] = true
      dirty = true
      dropped = dropped + 1
    end
  end
  return { 'ok', page[1], dropped }
end
