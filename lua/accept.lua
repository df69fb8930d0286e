-- accept.lua: the order of a person who may have an offer. In one step the offer ends and the order is held; a
-- refusal leaves the offer as it is, and so does an order that does not name its item. Units of the offer that the
-- order does not name are free at once. Where the gate has a queue, the order waits in the line.
--
-- a[1]  identities as in enter.lua, of the buyer who orders
-- a[2]  id         of the order's reservation; the same id again returns the same answer
-- a[3]  not_after  ms by Redis's own time; a later run is refused
-- a[4]  profile    as in reserve.lua
-- a[5]  guard      as in reserve.lua
-- a[6]  ref        the shop's own name of the order behind b| or s|, as in reserve.lua, or ''
-- a[7]  buyer      hash of the buyer
-- a[8]  rest       of the record, as in reserve.lua
-- a[9]  order      what is to be sent to the shop, packed, or ''
-- a[10] n          number of limits, then the field of each; then the counters of unpaid holds
--
-- Returns { 'ok', state, deadline, exp, epoch, created } { 'gone' }, as reserve.lua
--         { 'bound', by, id, state, same, created, deadline, exp, changed, epoch }
--         { 'no_sale' } { 'late' } { 'version', version } { 'not_started', starts, now } { 'paused' } { 'ended' }
--         { 'closed' } { 'window', now } { 'limit', i } { 'pending', i } { 'unpaid', wait } { 'unknown', i }
--         { 'sold_out', i, available, left, seq } { 'all_held', i, available, left, seq } { 'full' }
--         { 'not_your_turn', i }  the i-th item is not, or not in that number, of an offer of this person
--
-- uses bindings.lua: bind, bound_verdict, list_under, ref_field
-- uses changes.lua: CREATED, DEADLINE, EXP, LINES, MODE, PRINT, STATE, changed, operations, pairs_of, read_record
-- uses instead.lua: begun, charge, hold, none, offer_to, own_time, take_offer, turn_verdict, units_in, verdict_without
-- uses queue.lua: count_shop, load_queue_state, q, to_line
-- uses shard.lua: SCHEMA_OF_QUEUES, closed_answer, int, match, shard, time
-- uses verdicts.lua: read_profile

-- queue_of takes the mode of an order apart that waits in the line, see reserve.lua; nil: it does not
local function queue_of(mode)
  local most, bytes, longest, home, gate = match(mode, '^%a+:%a+:%d+:%d+:%d+:(%d+):(%d+):(%d+):(%S+):(%S+)$')
  return most and { most = tonumber(most), bytes = tonumber(bytes), longest = tonumber(longest), home = home, gate = gate }
end

-- no_room refuses an order for which there is no room in the line
local function no_room(o, packed)
  load_queue_state()
  if q.waiting >= o.most or q.bytes + #packed > o.bytes or packed == '' then return { 'full' } end
end

-- join puts a new order in the line
local function join(id, o, packed)
  count_shop()
  to_line(id, shard.seq, { home = o.home, try = 0, size = 0, again = 0, since = shard.now, number = shard.seq, taker = '-', gate = o.gate }, packed)
  changed.meta.queue, shard.queue = '1', true
  if shard.schema < SCHEMA_OF_QUEUES then changed.meta.schema = int(SCHEMA_OF_QUEUES) end
end

-- known_answer repeats the answer to an order
local function known_answer(r)
  if r[STATE] == 'tombstone' then return { 'gone' } end
  local state = r[STATE] == 'held' and r[MODE] == 'queued' and 'waiting' or r[STATE]
  return { 'ok', state, r[DEADLINE] - shard.lead, r[EXP], shard.epoch, r[CREATED] }
end

function operations.accept(a)
  local id, guard, buyer, packed = a[2], a[5], a[7], a[9]
  local ref, shared = string.sub(a[6], 3), string.sub(a[6], 1, 1) == 's'
  local known = read_record(id)
  if known then return known_answer(known) end
  if not shard.exists then return { 'no_sale' } end
  local profile = read_profile(a[4])
  local told, line = profile.version == 'told', queue_of(profile.mode)
  if line then profile.hold_for, profile.mode = line.longest, 'queued' end
  local r = begun(profile, shard.now + profile.hold_for, own_time() + profile.hold_for - profile.margin, own_time(), buyer, a[8])
  local bound = bound_verdict(guard, r[PRINT], ref, shared, buyer, r[LINES])
  if bound then return { 'bound', unpack(bound) } end
  if time > tonumber(a[3]) then return { 'late' } end
  local refusal
  if not told then
    if tonumber(profile.version) ~= shard.version then return { 'version', shard.version } end
    refusal = closed_answer()
    if refusal then return refusal end
  end
  local offer_id, offer = offer_to(buyer, a[1], units_in(pairs_of(r[LINES])))
  local back = offer and units_in(pairs_of(offer[LINES])) or {}
  refusal = turn_verdict(verdict_without(offer or none, back, profile, a, 10), profile, back) or line and not told and no_room(line, packed)
  if refusal then return refusal end

  if offer then take_offer(offer_id, offer) end
  charge(profile, a, 10)
  bind(guard, id)
  bind(ref_field(r), id)
  hold(id, r, '')
  list_under(ref, id)
  if line then join(id, line, packed) end
  return { 'ok', line and 'waiting' or 'held', r[DEADLINE] - shard.lead, r[EXP], shard.epoch, r[CREATED] }
end
