-- sweep.lua: drop counters of purchase limits whose window is over. Nothing reads
-- them any more, and no key of a shard has a time to live.
--
-- a[1]  cursor  where to go on; 0: at the beginning
-- a[2]  most    about how many counters to look at in this call
--
-- Returns { 'ok', cursor, dropped }; cursor 0: all have been looked at
--
-- uses asked.lua: sure_time
-- uses changes.lua: changed, dirty, operations
-- uses shard.lua: LIMITS_KEY, call, limits

function operations.sweep(a)
  local page = call('HSCAN', KEYS[LIMITS_KEY], a[1], 'COUNT', a[2])
  local dropped = 0
  for i = 1, #page[2], 2 do
    local field = page[2][i]
    -- limit|end of the window in ms|identity; a window without end has -
    local ends = tonumber(string.match(field, '^[^|]*|(%d+)|') or '')
    if ends and ends <= sure_time then
      limits[field] = { 0, 0, false }
      changed.limits[field] = true
      dirty = true
      dropped = dropped + 1
    end
  end
  return { 'ok', page[1], dropped }
end
