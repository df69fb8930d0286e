-- bindings.lua: keys and refs that belong to one reservation, so that no second one is
-- made for the same. It comes after shard.lua in every script.
--
-- A binding is a field of KEYS[11]:
--   k|hash  an idempotency key of a buyer: while the reservation is held or in doubt, and
--           when it is confirmed or unbacked for key_ttl, at least until the sale ends
--   d|hash  a buyer and lines, where there is no key: while it is held or in doubt, or
--           until the attempt is answered
--   b|buyer|ref  the shop's own name of the order, of one buyer (a hash): while it is held
--           or in doubt, and for ever when it is confirmed or unbacked
-- One whose reservation is none of these any more counts as free. BindingRank of package
-- reservation is the same in Go.
--
-- Two more fields find the reservations of a ref, of whichever buyer: those that are held, in
-- doubt, confirmed or unbacked. A shared ref is bound by them.
--   r|ref   the first of them. Older edges bind a ref by this alone.
--   m|ref   "id id …": all others, up to MOST_NAMED in all; then a + for those beyond
--
-- One more binds nothing. It finds what may still be asked for after its end:
--   x|ref   of those with a ref that have expired, or that the shop's API or a payment's webhook
--           released, the one that ended last; none once that is sold after all, released by
--           others or forgotten
--
-- uses changes.lua: BUYER, CHANGED, CREATED, DEADLINE, EXP, GUARD, KEY_TTL, LINES, MODE, PRINT, REF, RETURNED, STATE, changed, dirty, pairs_of, read_record
-- uses shard.lua: BINDINGS_KEY, bindings, call, concat, find, shard

local MOST_NAMED = 16

local function is_key(field) return string.sub(field, 1, 2) == 'k|' end
local function buyer_ref(buyer, ref) return ref ~= '' and 'b|' .. buyer .. '|' .. ref or '' end
local function ref_field(r) return buyer_ref(r[BUYER], r[REF]) end

local function read_binding(field)
  local id = bindings[field]
  if id == nil then
    id = call('HGET', KEYS[BINDINGS_KEY], field)
    bindings[field] = id
  end
  return id
end

local function bind(field, id)
  if field == '' then return end
  bindings[field] = id
  changed.bindings[field] = true
  dirty = true
end

-- unbind frees a field, if it belongs to this reservation
local function unbind(id, field)
  if field ~= '' and read_binding(field) == id then bind(field, false) end
end

-- owner_of returns the reservation that has a field, and its record, also where the time of a
-- key is over
local function owner_of(field)
  local id = field ~= '' and read_binding(field)
  local r = id and read_record(id)
  if not r or (r[GUARD] ~= field and ref_field(r) ~= field) then return nil end
  local state = r[STATE]
  if state == 'held' or state == 'in_doubt' then return id, r end
  if (state == 'confirmed' or state == 'unbacked') and (r[GUARD] ~= field or is_key(field)) then return id, r end
  return nil
end

-- bound_to returns the reservation to which a field belongs, and its record
local function bound_to(field)
  local id, r = owner_of(field)
  if not id or not is_key(field) or r[STATE] == 'held' or r[STATE] == 'in_doubt' then return id, r end
  if shard.now < r[CHANGED] + r[KEY_TTL] or shard.time < shard.ends then return id, r end
  return nil
end

-- taken reports whether another reservation keeps a field from one that becomes confirmed
-- or unbacked. A confirmed reservation stays and must be found, so it takes the field
-- even from a hold, which may yet free it. The time of a key does not count: the journal must
-- tell what becomes of the field, see replay.lua, and it does not say what time it was.
local function taken(field, state)
  local id, r = owner_of(field)
  if not id then return false end
  return state ~= 'confirmed' or r[STATE] == 'confirmed'
end

-- named_by returns the ids that the fields of a ref have, and whether there are more
local function named_by(ref)
  local ids, more = {}, false
  local first, others = read_binding('r|' .. ref), read_binding('m|' .. ref)
  if first then ids[1] = first end
  for word in string.gmatch(others or '', '%S+') do
    if word == '+' then more = true else ids[#ids + 1] = word end
  end
  return ids, more
end

-- live_under returns the record of a reservation that has a ref and may be found by it
local function live_under(id, ref)
  local r = read_record(id)
  if not r or r[REF] ~= ref then return nil end
  local state = r[STATE]
  if state == 'held' or state == 'in_doubt' or state == 'confirmed' or state == 'unbacked' then return r end
  return nil
end

-- others_of is what m|ref is then; false: nothing
local function others_of(ids, more)
  local text = concat(ids, ' ', 2)
  if more then text = text == '' and '+' or text .. ' +' end
  return text ~= '' and text
end

-- with_named returns what r|ref and m|ref are once a reservation is in them
local function with_named(ref, id)
  local before, more = named_by(ref)
  local ids = {}
  for _, other in ipairs(before) do
    if other ~= id and live_under(other, ref) then ids[#ids + 1] = other end
  end
  if #ids < MOST_NAMED then ids[#ids + 1] = id else more = true end
  return ids[1], others_of(ids, more)
end

local function bind_named(ref, first, others)
  if (read_binding('r|' .. ref) or false) ~= first then bind('r|' .. ref, first) end
  if (read_binding('m|' .. ref) or false) ~= others then bind('m|' .. ref, others) end
end

-- list_under makes a reservation findable by its ref
local function list_under(ref, id)
  if ref ~= '' then bind_named(ref, with_named(ref, id)) end
end

-- unlist_under ends that; the next one is the first then
local function unlist_under(ref, id)
  if ref == '' then return end
  local before, more = named_by(ref)
  local ids = {}
  for _, other in ipairs(before) do
    if other ~= id then ids[#ids + 1] = other end
  end
  if #ids < #before then bind_named(ref, ids[1] or false, others_of(ids, more)) end
end

-- stays_found reports whether a reservation that ends so is still found by its ref
local function stays_found(state, cause)
  return state == 'expired' or state == 'released' and (find(cause, 'webhook', 1, true) == 1 or find(cause, 'api', 1, true) == 1)
end

-- note_end keeps x|ref up to date when a reservation leaves a state
local function note_end(id, r, was, state, cause)
  if r[REF] == '' then return end
  if stays_found(state, cause) then
    bind('x|' .. r[REF], id)
  elseif was ~= 'held' and was ~= 'in_doubt' then
    unbind(id, 'x|' .. r[REF])
  end
end

-- bind_again gives a reservation that is sold after all its key and its ref, unless
-- another one keeps them
local function bind_again(id, r, state)
  local guard, ref = r[GUARD], ref_field(r)
  if not is_key(guard) or taken(guard, state) then guard = '' end
  if taken(ref, state) then ref = '' end
  bind(guard, id)
  bind(ref, id)
  list_under(r[REF], id)
end

-- same_lines reports whether two texts "cell quantity …" are the same units
local function same_lines(a, b)
  local n = {}
  for _, line in ipairs(pairs_of(a)) do n[line[1]] = (n[line[1]] or 0) + line[2] end
  for _, line in ipairs(pairs_of(b)) do n[line[1]] = (n[line[1]] or 0) - line[2] end
  for _, units in pairs(n) do
    if units ~= 0 then return false end
  end
  return true
end

-- bound_by_ref returns the reservation that a ref belongs to: that of the same buyer or,
-- where refs are shared, of any
local function bound_by_ref(ref, shared, buyer)
  local id, r = bound_to(buyer_ref(buyer, ref))
  if id or ref == '' then return id, r end
  local ids = named_by(ref)
  for _, other in ipairs(ids) do
    r = live_under(other, ref)
    if r and (shared or r[BUYER] == buyer) then return other, r end
  end
  return nil
end

-- same_guard reports whether two guards may be of the same order: where both are made of a buyer and lines, these tell a
-- bundle from its components
local function same_guard(a, b) return a == b or a == '' or b == '' or is_key(a) or is_key(b) end

-- bound_verdict finds the reservation to which a guard or else a ref belongs:
-- { by, id, state, same, created, deadline, exp, changed, epoch }, by: key | ref | single;
-- same: 1 when it was made for the same; by a ref also nothing of it has come back,
-- because its token is good for all of it; state: waiting for a hold that waits for the shop.
-- nil: there is none.
local function bound_verdict(guard, print, ref, shared, buyer, lines)
  local by, same = 'single', true
  local id, r = bound_to(guard)
  if id then
    if is_key(guard) then by, same = 'key', r[PRINT] == print end
  else
    id, r = bound_by_ref(ref, shared, buyer)
    if not id then return nil end
    by, same = 'ref', false
    if r[BUYER] == buyer and r[RETURNED] == '' then same = same_guard(r[GUARD], guard) and same_lines(r[LINES], lines) end
  end
  return { by, id, r[STATE] == 'held' and r[MODE] == 'queued' and 'waiting' or r[STATE], same and 1 or 0, r[CREATED], r[DEADLINE] - shard.lead, r[EXP], r[CHANGED] - shard.lead, shard.epoch }
end
