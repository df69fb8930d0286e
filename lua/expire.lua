-- expire.lua: end the holds whose deadline has passed. In mode response the shop
-- may have the order: in doubt. In mode backend the units go back on sale.
-- Tombstones whose time is over go too. Any number of edges may run it.
--
-- a[1]  most  how many to end in this call
--
-- Returns { 'ok', ended, more }; more is 1 when there may be others

function operations.expire(a)
  local most = tonumber(a[1])
  if is_carrying() then return { 'ok', 0, 0 } end -- it may have a later deadline there
  local due = call('ZRANGEBYSCORE', KEYS[5], '-inf', int(shard.now), 'LIMIT', 0, most)
  local ended = 0
  for _, id in ipairs(due) do
    local r = read_record(id)
    if not r or r[STATE] ~= 'held' then
      unindex(id, 'held') -- resolved earlier in this call
    elseif r[DEADLINE] <= shard.now then -- else extended earlier in this call
      if r[MODE] == 'backend' then give_back(r, true) end
      change_state(id, r, r[MODE] == 'backend' and 'expired' or 'in_doubt', 'deadline')
      ended = ended + 1
    end
  end
  -- by Redis's own time: not_after is given in it
  local over = call('ZRANGEBYSCORE', KEYS[8], '-inf', int(shard.time), 'LIMIT', 0, most)
  for _, id in ipairs(over) do
    unindex(id, 'tombstone')
    write_record(id, false)
  end
  return { 'ok', ended, (#due == most or #over == most) and 1 or 0 }
end
