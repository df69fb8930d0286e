-- expire.lua: end the holds whose deadline has passed. In mode response the shop may
-- have the order: they are in doubt. In mode backend the units go back on sale once the
-- token has expired: while it is valid, by Redis's current time and by the caller's own
-- estimate of it, the deadline is extended. In modes queued and offer nothing was sent: they are
-- released. Tombstones past their time are deleted too.
-- Any number of edges may run it. A caller that cannot tell the time ends nothing.
--
-- It also maintains the shard's clock: a forward step of time that the caller has seen
-- is subtracted from its lead, and the lead ends when no hold is left. While anything
-- is held the clock is stored every second.
--
-- a[1]  most     how many to end in this call
-- a[2]  stepped  1: the caller has seen the shard's clock jump ahead of its own
--
-- Returns { 'ok', ended, more }; more is 1 when there may be others
--
-- uses asked.lua: sure_time
-- uses changes.lua: DEADLINE, EXP, MODE, STATE, dirty, operations, read_record, want, wanted_records, write_record, zadd
-- uses queuetimes.lua: move_times
-- uses shard.lua: DEADLINES_KEY, IN_DOUBT_KEY, TOLERANCE, TOMBSTONES_KEY, call, clock, int, records, shard, time
-- uses states.lua: change_state, give_back, margin_of, put_off, read_ahead, unindex

-- end_hold returns how many holds it has ended, and to how many it gave more time
local function end_hold(id, r)
  local ends = r[EXP] + margin_of(r)
  if r[MODE] == 'queued' then
    give_back(r, true)
    change_state(id, r, 'released', 'waited too long')
  elseif r[MODE] == 'offer' then
    give_back(r, true)
    change_state(id, r, 'released', 'lapsed')
  elseif r[MODE] ~= 'backend' then
    change_state(id, r, 'in_doubt', 'deadline')
  elseif ends <= sure_time then
    give_back(r, true)
    change_state(id, r, 'expired', 'deadline')
  elseif ends + shard.lead > r[DEADLINE] then -- the shop may still take the token
    put_off(id, r, ends + shard.lead, r[EXP], 'token')
    return 0, 1
  else
    return 0, 0
  end
  return 1, 0
end

local function no_holds()
  return call('ZCARD', KEYS[DEADLINES_KEY]) + call('ZCARD', KEYS[IN_DOUBT_KEY]) == 0 and not next(zadd.deadlines) and not next(zadd.in_doubt)
end

-- ms between two times that the clock is stored
local STORED_EVERY = 1000

local function set_lead(n)
  shard.lead, shard.now, shard.lead_changed, dirty = n, time + n, true, true
end

local function look_after_lead(stepped)
  local ahead = shard.ahead or 0
  if shard.lead ~= 0 and no_holds() then
    move_times(shard.now - time)
    set_lead(0)
  elseif stepped and ahead > TOLERANCE and not no_holds() then
    set_lead(shard.lead - ahead)
  end
  -- from where the clock continues after a step back; nothing else may write while holds wait
  if shard.now - clock >= STORED_EVERY and call('ZCARD', KEYS[DEADLINES_KEY]) > 0 then dirty = true end
end

function operations.expire(a)
  local most = tonumber(a[1])
  -- a reservation yet to be merged may have a later deadline
  if shard.merging or sure_time == 0 then return { 'ok', 0, 0 } end
  look_after_lead(a[2] == '1')
  local due = call('ZRANGEBYSCORE', KEYS[DEADLINES_KEY], '-inf', int(shard.now), 'LIMIT', 0, most)
  for _, id in ipairs(due) do
    if records[id] == nil then want(wanted_records, id) end
  end
  read_ahead()
  local ended, later = 0, 0
  for _, id in ipairs(due) do
    local r = read_record(id)
    if not r or r[STATE] ~= 'held' then
      unindex(id, 'held') -- resolved earlier in this call
      later = later + 1
    elseif r[DEADLINE] <= shard.now then -- else extended earlier in this call
      local e, l = end_hold(id, r)
      ended, later = ended + e, later + l
    end
  end
  -- not_after is given by Redis's own time
  local over = call('ZRANGEBYSCORE', KEYS[TOMBSTONES_KEY], '-inf', int(sure_time), 'LIMIT', 0, most)
  for _, id in ipairs(over) do
    unindex(id, 'tombstone')
    write_record(id, false)
  end
  return { 'ok', ended, (#due == most and ended + later > 0 or #over == most) and 1 or 0 }
end
