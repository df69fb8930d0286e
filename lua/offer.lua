-- offer.lua: hold units for the person whose turn it is, until a deadline. The shop does not know of an offer, and
-- only accept.lua makes an order of it. Callers know from the journal in which order people entered.
--
-- a[1]  number     of the entry, which must wait; where the offer is told again after a fence, the buyer's entry may
--                  have got another one
-- a[2]  not_after  ms by Redis's own time; a later run is refused
-- a[3]  profile    as in reserve.lua, in mode offer: the entry's cell, and at most its quantity
-- a[4]  rest       of the record, as in reserve.lua
-- a[5]  buyer      hash of the buyer whose entry it is
-- a[6]  n          number of limits, then the field of each
--
-- Returns { 'ok', state, deadline, exp, epoch, created } also where it was made before
--         { 'gone' }  the entry does not wait any more
--         { 'late' } { 'version', version } { 'not_started', starts, now } { 'closed' }
--         { 'paused' }  also while an operator lets no offer be made, see offers.lua
--         { 'ended' }  also where the sale ends before the offer would
--         { 'window', now } { 'limit', i } { 'pending', i } { 'unpaid', wait } { 'unknown', i }
--         { 'sold_out', i, available, left, seq } { 'all_held', i, available, left, seq }
--
-- uses changes.lua: CREATED, DEADLINE, EXP, STATE, operations, read_record
-- uses instead.lua: begun, charge, hold, none, own_time, verdict_without
-- uses shard.lua: closed_answer, shard, time
-- uses verdicts.lua: read_profile
-- uses waitlist.lua: waitlist

function operations.offer(a)
  local profile, number = read_profile(a[3]), tonumber(a[1])
  if profile.version == 'told' then number = waitlist.number_under(a[5]) end
  local e = number and waitlist.entry(number)
  if not e or e.buyer ~= a[5] then return { 'gone' } end
  local id = waitlist.id_of(e)
  local known = read_record(id)
  if known and known[STATE] == 'held' then return { 'ok', 'held', known[DEADLINE] - shard.lead, known[EXP], shard.epoch, known[CREATED] } end
  if known or e.state ~= 'w' then return { 'gone' } end
  if time > tonumber(a[2]) then return { 'late' } end
  local refusal
  if profile.version ~= 'told' then
    if tonumber(profile.version) ~= shard.version then return { 'version', shard.version } end
    refusal = closed_answer()
    if refusal then return refusal end
    if waitlist.paused() then return { 'paused' } end
    if time + profile.hold_for > shard.ends then return { 'ended' } end
  end
  refusal = verdict_without(none, {}, profile, a, 6)
  if refusal then return refusal end
  local due, exp = shard.now + profile.hold_for, own_time() + profile.hold_for
  if shard.status == 'paused' then due, exp = math.max(due, shard.ends + shard.lead), profile.hold_for end -- told again
  local r = begun(profile, due, exp, own_time(), e.buyer, a[4])
  charge(profile, a, 6)
  waitlist.offer(number, profile.units[1])
  hold(id, r, '')
  return { 'ok', 'held', r[DEADLINE] - shard.lead, r[EXP], shard.epoch, r[CREATED] }
end
