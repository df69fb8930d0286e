-- swap.lua: the buyer of an order that is held has changed its cart. In one step the hold is
-- released and another one made for the new lines, which ends when it would; a refusal leaves it as
-- it is. New units may be those that the buyer is offered: the offer then ends as in accept.lua. The shop may still sell with the old token, so what the new lines lack stays held until
-- that has expired, and a confirm of the old hold undoes the swap, see confirm.lua.
--
-- a[1]  old        id of the hold
-- a[2]  id         id of the new one; the same id again returns the same answer
-- a[3]  not_after  ms by Redis's own time; a later run is refused
-- a[4]  profile    as in reserve.lua
-- a[5]  guard      as in reserve.lua, not of an idempotency key
-- a[6]  ref        the shop's own name of the order, that of the old hold
-- a[7]  buyer      hash of the buyer, that of the old hold
-- a[8]  rest       of the record, as in reserve.lua
-- a[9]  identities as in enter.lua, of the buyer
-- a[10] n          number of limits, then the field of each; then the counters of unpaid holds
--
-- Returns { 'ok', state, deadline, exp, epoch, created } { 'gone' }, as reserve.lua
--         { 'no_sale' } { 'late' } { 'version', version } { 'not_started', starts, now } { 'paused' } { 'ended' }
--         { 'closed' } { 'window', now } { 'limit', i } { 'pending', i } { 'unpaid', wait } { 'unknown', i }
--         { 'sold_out', i, available, left, seq } { 'all_held', i, available, left, seq } { 'not_your_turn', i }
--         { 'conflict', state }  the old one is not held any more, not with outcome backend, not by
--                                this buyer and ref, under an idempotency key, or is about to end
--         { 'at_shop' }          a request of it, or the same one, is still being answered
--         { 'not_found' } { 'restoring' }
--
-- uses bindings.lua: bind, bound_by_ref, bound_to, buyer_ref, is_key, list_under, live_under, named_by, read_binding
-- uses changes.lua: BUYER, CHANGED, CHARGES, CREATED, DEADLINE, EXP, GUARD, LINES, MODE, PRINT, REF, STATE, UNPAID, complete, not_found, operations, pairs_of, read_record, reads, want, wanted_records
-- uses instead.lua: begun, charge, hold, offer_to, take_offer, turn_verdict, units_in, verdict_without
-- uses shard.lua: closed_answer, concat, int, shard, time
-- uses states.lua: change_state, give_back, swapped
-- uses verdicts.lua: read_profile

function reads.swap(a)
  want(wanted_records, a[1])
  want(wanted_records, a[2])
end

function operations.swap(a)
  local old_id, id, guard, ref, buyer = a[1], a[2], a[5], a[6], a[7]
  local known = read_record(id)
  if known and known[STATE] == 'tombstone' then return { 'gone' } end
  if known then return { 'ok', known[STATE] == 'held' and known[MODE] == 'queued' and 'waiting' or known[STATE], known[DEADLINE] - shard.lead, known[EXP], shard.epoch, known[CREATED] } end
  if not shard.exists then return { 'no_sale' } end
  local old = read_record(old_id)
  if not old or old[STATE] == 'tombstone' then return not_found() end
  if old[STATE] ~= 'held' or old[MODE] ~= 'backend' or ref == '' or old[REF] ~= ref or old[BUYER] ~= buyer or is_key(old[GUARD]) then
    return { 'conflict', old[STATE] }
  end
  if old[GUARD] ~= '' and read_binding(old[GUARD]) == old_id or bound_to(guard) then return { 'at_shop' } end
  local owner = bound_by_ref(ref, false, buyer)
  if owner ~= old_id then return { 'conflict', owner and read_record(owner)[STATE] or old[STATE] } end
  for _, other_id in ipairs(named_by(ref)) do
    local other = other_id ~= old_id and live_under(other_id, ref)
    if other and other[BUYER] == buyer then return { 'conflict', other[STATE] } end
  end
  local profile = read_profile(a[4])
  -- another cart does not lengthen the hold: clients would keep units for ever
  -- and what both tokens name stays held as long as the old one is good
  local due = old[DEADLINE]
  local ends = time + due - shard.now
  local exp = math.min(ends, time + profile.hold_for) - profile.margin
  if exp <= time then return { 'conflict', 'held' } end
  if time > tonumber(a[3]) then return { 'late' } end
  local refusal
  if profile.version ~= 'told' then
    if tonumber(profile.version) ~= shard.version then return { 'version', shard.version } end
    refusal = closed_answer()
    if refusal then return refusal end
  end
  local back, needed, more, rest = units_in(pairs_of(old[LINES])), {}, {}, {}
  for i, cell in ipairs(profile.cells) do needed[cell] = (needed[cell] or 0) + profile.units[i] end
  for cell, units in pairs(needed) do more[cell] = units > (back[cell] or 0) end
  local offer_id, offer = offer_to(buyer, a[9], more)
  local both = offer and complete({ [LINES] = old[LINES] .. ' ' .. offer[LINES], [CHARGES] = old[CHARGES] .. ' ' .. offer[CHARGES], [UNPAID] = old[UNPAID] }) or old
  local free = units_in(pairs_of(both[LINES]))
  refusal = turn_verdict(verdict_without(both, free, profile, a, 10), profile, free)
  if refusal then return refusal end

  for cell, units in pairs(back) do
    if units > (needed[cell] or 0) then rest[#rest + 1] = cell .. ' ' .. int(units - (needed[cell] or 0)) end
  end
  table.sort(rest)
  local old_exp, led = old[EXP], old[CHANGED] - old[CREATED]
  give_back(old, true)
  change_state(old_id, old, 'released', swapped)
  if offer then take_offer(offer_id, offer) end
  if rest[1] then
    hold(old_id .. '+', complete({ 'held', due, old_exp, shard.now - led, shard.now, 'backend', buyer, concat(rest, ' '), '', swapped, shard.version }), swapped)
  end
  charge(profile, a, 10)
  local r = begun(profile, due, exp, time, buyer, a[8])
  r[PRINT] = '+' .. old_id
  bind(guard, id)
  bind(buyer_ref(buyer, ref), id)
  hold(id, r, '')
  list_under(ref, id)
  return { 'ok', 'held', ends, r[EXP], shard.epoch, time }
end
