-- line.lua: operators look at the orders that wait, let no more of them go to the shop, let them
-- go on, or release them.
--
-- a[1]  does   show | pause | resume | drain
-- a[2]  most   how many to release in this call
-- a[3]  cause  who says so
--
-- Returns { 'ok', waiting, at_shop, bytes, paused, held_up, oldest, left, seconds, released, skipped }:
--         paused 1 or 0; held_up, ms for which the shop has asked; oldest, ms that the first one
--         has waited; left, how many left for the shop in so many of the last seconds;
--         skipped, how many of those that wait no edge can send
--         { 'not_found' } { 'restoring' } there is no such sale
--
-- uses changes.lua: MODE, STATE, dirty, not_found, operations, read_record
-- uses queue.lua: ASIDE, aside, from_line, left_lately, load_queue_state, number_of, q, read_order
-- uses shard.lua: LINE_KEY, call, shard
-- uses states.lua: change_state, give_back

function operations.line(a)
  if not shard.exists then return not_found() end
  local does, most, released = a[1], tonumber(a[2]), 0
  load_queue_state()
  local skipped = aside()
  if does == 'pause' then
    q.paused, q.fields.paused, dirty = true, '1', true
  elseif does == 'resume' then
    q.paused, q.fields.paused, q.not_before, q.fields['until'], dirty = false, false, 0, false, true
  elseif does == 'drain' then
    for _, id in ipairs(call('ZRANGE', KEYS[LINE_KEY], 0, most - 1)) do
      if number_of(call('ZSCORE', KEYS[LINE_KEY], id)) > ASIDE / 2 then skipped = skipped - 1 end
      local r = read_record(id)
      if r and r[STATE] == 'held' and r[MODE] == 'queued' then
        give_back(r, true)
        change_state(id, r, 'released', a[3])
        released = released + 1
      else
        from_line(id)
        dirty = true
      end
    end
  end
  local o
  for _, id in ipairs(call('ZRANGE', KEYS[LINE_KEY], 0, does == 'drain' and most or 0)) do
    if not q.no_line[id] then
      o = read_order(id)
      break
    end
  end
  local left, seconds = left_lately()
  local held_up, oldest = math.max(q.not_before - shard.now, 0), o and shard.now - o.since or 0
  return { 'ok', q.waiting, q.at_shop, q.bytes, q.paused and 1 or 0, held_up, oldest, left, seconds, released, skipped }
end
