-- bindings.lua: what belongs to one reservation, so that nobody makes a second one
-- for the same. It comes after shard.lua in every script.
--
-- A binding is a field of KEYS[11]:
--   k|hash  an idempotency key of a buyer: while the reservation is held or in doubt, and
--           when it is confirmed or unbacked for key_ttl, at least until the sale ends
--   d|hash  a buyer and lines, where there is no key: while it is held or in doubt, or
--           until the attempt is answered
--   r|ref   the shop's own name of the order: while it is held or in doubt, and for ever
--           when it is confirmed or unbacked
-- One whose reservation is none of these any more counts as free.

local function is_key(field) return string.sub(field, 1, 2) == 'k|' end
local function ref_field(ref) return ref ~= '' and 'r|' .. ref or '' end

local function read_binding(field)
  local id = bindings[field]
  if id == nil then
    id = call('HGET', KEYS[11], field)
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

-- bound_to returns the reservation to which a field belongs, and its record
local function bound_to(field)
  local id = field ~= '' and read_binding(field)
  local r = id and read_record(id)
  if not r or (r[GUARD] ~= field and ref_field(r[REF]) ~= field) then return nil end
  local state = r[STATE]
  if state == 'held' or state == 'in_doubt' then return id, r end
  if state ~= 'confirmed' and state ~= 'unbacked' then return nil end
  if r[GUARD] ~= field then return id, r end
  if is_key(field) and (shard.now < r[CHANGED] + r[KEY_TTL] or shard.time < shard.ends) then return id, r end
  return nil
end

-- taken says that a field cannot be had by a reservation that becomes confirmed or
-- unbacked: another one has it. What is confirmed stays so and must be found, so it
-- takes the field even from a hold, which may yet free it.
local function taken(field, state)
  local id, r = bound_to(field)
  if not id then return false end
  return state ~= 'confirmed' or r[STATE] == 'confirmed'
end

-- bind_again gives a reservation that is sold after all its key and its ref, as
-- far as they can be had
local function bind_again(id, r, state)
  local guard, ref = r[GUARD], ref_field(r[REF])
  if not is_key(guard) or taken(guard, state) then guard = '' end
  if taken(ref, state) then ref = '' end
  bind(guard, id)
  bind(ref, id)
end

-- same_lines says whether two texts "cell quantity …" are the same units
local function same_lines(a, b)
  local n = {}
  for _, line in ipairs(pairs_of(a)) do n[line[1]] = (n[line[1]] or 0) + line[2] end
  for _, line in ipairs(pairs_of(b)) do n[line[1]] = (n[line[1]] or 0) - line[2] end
  for _, units in pairs(n) do
    if units ~= 0 then return false end
  end
  return true
end

-- bound_verdict finds the reservation to which a guard or else a ref belongs:
-- { by, id, state, same, created, deadline, exp, changed, epoch }, by: key | ref | single;
-- same: 1 when it was made for the same; by a ref also nothing of it has come back,
-- because its token is good for all of it. nil: there is none.
local function bound_verdict(guard, print, ref, buyer, lines)
  local by, same = 'single', true
  local id, r = bound_to(guard)
  if id then
    if is_key(guard) then by, same = 'key', r[PRINT] == print end
  else
    id, r = bound_to(ref_field(ref))
    if not id then return nil end
    by, same = 'ref', false
    if r[BUYER] == buyer and r[RETURNED] == '' then same = same_lines(r[LINES], lines) end
  end
  return { by, id, r[STATE], same and 1 or 0, r[CREATED], r[DEADLINE] - shard.lead, r[EXP], r[CHANGED] - shard.lead, shard.epoch }
end
