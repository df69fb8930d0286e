-- align.lua: end the lead of the shard's clock over Redis's own time, all in one call. Every
-- hold keeps the time that it has left: its deadline, and since when it is in its state, move
-- by the lead, and the journal tells its record. So do the times of the queue.
--
-- a[1]  cause  who
--
-- Returns { 'ok', lead, moved } the ms that the clock was ahead, and how many holds moved; { 'no_sale' }
--
-- uses changes.lua: BUYER, CHANGED, DEADLINE, PROBES, STATE, dirty, operations, read_record, read_wanted, text_of, want, write_journal, write_record
-- uses queuetimes.lua: move_order, move_times
-- uses shard.lua: DEADLINES_KEY, IN_DOUBT_KEY, RECORDS_KEY, call, int, match, records, shard, time
-- uses states.lua: index

function operations.align(a)
  if not shard.exists then return { 'no_sale' } end
  local lead, moved = shard.now - time, 0
  if lead == 0 and shard.lead == 0 then return { 'ok', 0, 0 } end
  local list = { n = 0 }
  for place = DEADLINES_KEY, IN_DOUBT_KEY do
    for _, id in ipairs(call('ZRANGE', KEYS[place], 0, -1)) do want(list, id) end
  end
  read_wanted(list, KEYS[RECORDS_KEY], records)
  shard.now, shard.lead, shard.lead_changed, dirty = time, 0, true, true
  move_times(lead)
  for _, id in ipairs(list) do
    local r = read_record(id)
    if r and (r[STATE] == 'held' or r[STATE] == 'in_doubt') then
      r[DEADLINE], r[CHANGED] = r[DEADLINE] - lead, r[CHANGED] - lead
      local tries, next_at, rest = match(r[PROBES], '^(%d+) (%d+)( .*)$')
      if tries then r[PROBES] = tries .. ' ' .. int(tonumber(next_at) - lead) .. rest end
      index(id, r[STATE], r[STATE] == 'held' and r[DEADLINE] or r[CHANGED])
      move_order(id, lead)
      write_record(id, r)
      write_journal('extended', id, r[STATE], '', r[BUYER], a[1], text_of(id))
      moved = moved + 1
    end
  end
  return { 'ok', lead, moved }
end
