-- merge.lua: merge a reservation of the shard's previous life, if its units are there.
--
-- a[1]  id      reservation id; one that is here already is left as it is, but for a hold that was
--               extended, was sent or has expired there; one that must not be reserved any more is released
-- a[2]  record  its text, see shard.lua
--
-- Returns { 'ok', state, merged }: the state that holds now; merged: 1 when it was not here.
--         Without its units what was confirmed is unbacked now, and a hold is expired. What
--         came back of it has not come back yet.
--
-- uses bindings.lua: bind, bind_again, bound_to, is_key, list_under, note_end, ref_field
-- uses changes.lua: BUYER, CAUSE, CHANGED, CHARGED, CHARGES, CREATED, DEADLINE, EXP, GUARD, LINES, MODE, PENDING, REF, RETURNED, STATE, move, operations, pairs_of, parse_record, read_limit, read_record, reads, text_of, want_reservation, write_journal, write_limit, write_record
-- uses queue.lua: count_shop, leave_queue, load_queue_state
-- uses shard.lua: AVAILABLE, shard
-- uses states.lua: all_available, change_state, columns, give_back, hold_unpaid, index, unindex
-- uses waitlist.lua: waitlist

-- go_on brings a held hold to where it was: it has a later deadline, or its order was sent or waits
-- again, see anew.lua, and the line learns of it as of one that was merged.
local function go_on(id, known, r)
  local anew = r[CHANGED] > known[CHANGED]
  if not anew and (r[MODE] ~= known[MODE] or r[DEADLINE] <= known[DEADLINE]) then return end
  local cause = ''
  if anew then
    if shard.queue and r[MODE] ~= known[MODE] then
      leave_queue(id) -- its request may be open, so that it waits again
      count_shop(id, r[MODE], r[CHANGED])
    end
    known[MODE], known[CHANGED], known[CAUSE], cause = r[MODE], r[CHANGED], r[CAUSE], r[CAUSE]
  end
  known[DEADLINE], known[EXP], known[CREATED] = r[DEADLINE], r[EXP], r[CREATED]
  index(id, 'held', known[DEADLINE])
  write_record(id, known)
  write_journal('extended', id, 'held', '', known[BUYER], cause, text_of(id))
end

reads.merge = want_reservation

function operations.merge(a)
  local id = a[1]
  local known = read_record(id)
  local r = parse_record(a[2])
  if known and known[STATE] ~= 'tombstone' then
    if known[STATE] == 'held' and r[STATE] == 'expired' then -- not released: the shop may still confirm it
      give_back(known, true)
      change_state(id, known, 'expired', r[CAUSE])
    elseif known[STATE] == 'held' and r[STATE] == 'held' then
      go_on(id, known, r)
    end
    return { 'ok', known[STATE], 0 }
  end
  local was = r[STATE]
  local state = was
  if known and (state == 'held' or state == 'in_doubt') then
    state, r[CHANGED], r[CAUSE] = 'released', shard.now, known[CAUSE]
  end
  local lines = pairs_of(r[LINES])
  if columns[state] ~= AVAILABLE and not all_available(lines) then
    state = state == 'confirmed' and 'unbacked' or 'expired'
    r[CHANGED], r[CAUSE] = shard.now, 'rebuilt: its units are gone'
  end
  r[STATE], r[RETURNED] = state, ''

  if known then unindex(id, 'tombstone') end
  if columns[state] ~= AVAILABLE then
    for _, line in ipairs(lines) do move(line[1], line[2], AVAILABLE, columns[state]) end
    for _, charge in ipairs(pairs_of(r[CHARGES])) do
      local l = read_limit(charge[1])
      write_limit(charge[1], l[CHARGED] + charge[2], l[PENDING] + (state == 'confirmed' and 0 or charge[2]))
    end
  end
  if state == 'held' then hold_unpaid(r) end
  if state == 'held' and shard.queue then -- it may be at the shop
    load_queue_state()
    count_shop(id, r[MODE], r[CHANGED])
  end
  if state == 'held' or state == 'in_doubt' then
    -- in mode backend the attempt was answered: the buyer may repeat the purchase
    local guard = (is_key(r[GUARD]) or r[MODE] ~= 'backend') and r[GUARD] or ''
    if not bound_to(guard) then bind(guard, id) end
    if not bound_to(ref_field(r)) then bind(ref_field(r), id) end
    list_under(r[REF], id)
  elseif state == 'confirmed' or state == 'unbacked' then
    bind_again(id, r, state)
  end
  note_end(id, r, '', state, r[CAUSE])
  index(id, state, state == 'held' and r[DEADLINE] or r[CHANGED])
  if r[MODE] == 'offer' and r[STATE] == was then waitlist.follow(id, r) end -- else the person waits on
  write_record(id, r)
  write_journal(state, id, '', r[LINES], r[BUYER], r[CAUSE], text_of(id))
  return { 'ok', state, 1 }
end
