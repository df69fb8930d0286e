-- open_offers.lua: what becomes of open offers when their sale changes. A pause is not of an offer's time: until the sale goes on,
-- exp is the ms that are left of it, and the deadline is the end of the sale, which no offer outlasts.
--
-- uses changes.lua: DEADLINE, EXP, MODE, STATE, read_record, want, wanted_records
-- uses shard.lua: records, shard, time
-- uses states.lua: change_state, give_back, put_off, read_ahead
-- uses waitlist.lua: TIMES, waitlist

-- each_offer calls a function with the offers that are open, in the order of their entries
local function each_offer(visit)
  local ids = waitlist.offers()
  for _, id in ipairs(ids) do
    if records[id] == nil then want(wanted_records, id) end
  end
  read_ahead()
  for _, id in ipairs(ids) do
    local r = read_record(id)
    if r and r[STATE] == 'held' and r[MODE] == 'offer' then visit(id, r) end
  end
end

-- offers_follow brings open offers to what the sale is now. Those that have come there stay as they are.
local function offers_follow(cause)
  if not shard.waitlist then return end
  each_offer(function(id, r)
    local off = r[EXP] < TIMES
    local left = off and r[EXP] or math.max(r[DEADLINE] - shard.now, 0)
    local last = math.max(r[DEADLINE], shard.ends + shard.lead)
    if shard.status == 'closed' then
      give_back(r, true)
      change_state(id, r, 'released', 'closed')
    elseif shard.status == 'paused' then
      if not off or last > r[DEADLINE] then put_off(id, r, last, left, cause) end
    elseif off then
      local exp = math.min(time + left, math.max(shard.ends, time))
      put_off(id, r, exp + shard.lead, exp, cause)
    end
  end)
end
