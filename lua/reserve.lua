-- reserve.lua: hold stock for one attempt, or say why not. All or nothing:
-- every line and every limit passes, or nothing is charged.
--
-- a[1]  id         reservation id; the same id again returns the same answer
-- a[2]  not_after  ms by Redis's own time; a later run is refused
-- a[3]  terms      "version hold_for margin key_ttl mode gate", the same for many attempts:
--                  version of the sale that the caller knows, another one changes nothing;
--                  hold_for, ms from now until the deadline; margin, ms that the token expires
--                  before it; key_ttl, ms that the key stays bound once it is confirmed; mode,
--                  response | backend, what the deadline does; gate, that asks, or nothing
-- a[4]  buyer      hash of the buyer
-- a[5]  guard      the binding of the idempotency key, or of the buyer and the lines; '': none
-- a[6]  print      hash of what is asked under the key
-- a[7]  ref        the shop's own name of the order, or ''
-- a[8]  n          number of lines, then for each: cell, quantity
-- …     m          number of limits, then for each: field, "amount max from to"
--                  (the window [from, to) in ms by the shard's clock)
--
-- Returns { 'ok', state, deadline, exp, epoch, created }
--         { 'gone' }                       released before it was reserved
--         { 'bound', by, id, state, same, created, deadline, exp, changed, epoch }
--                                          the guard or the ref belongs to another one, see bindings.lua
--         { 'version', version } { 'late' } { 'no_sale' }
--         { 'not_started', starts, now } { 'paused' } { 'ended' } { 'closed' }
--         { 'window', now }                a limit's window is not the current one
--         { 'limit', i } { 'pending', i }  the i-th limit is full; pending: holds may still free it
--         { 'unknown', i } { 'sold_out', i, available, left, seq } { 'all_held', i, available, left, seq }
--         (left: the units that are available or may come back; seq: the journal's newest number then)

local function window_verdict()
  if shard.status == 'closed' then return { 'closed' } end
  if shard.now >= shard.ends then return { 'ended' } end
  if shard.status == 'draft' then return { 'not_started', 0, shard.now } end
  if shard.now < shard.starts then return { 'not_started', shard.starts, shard.now } end
  if shard.status == 'paused' then return { 'paused' } end
  return nil
end

-- What is the same for many attempts is read once in a call: the terms, with what
-- follows from them for a record, and the numbers of a limit.
local terms_known, quotas_known = {}, {}

local function terms_of(text)
  local t = terms_known[text]
  if t then return t end
  local version, hold_for, margin, key_ttl, mode, gate = match(text, '^(%S*) (%S*) (%S*) (%S*) (%S*) (.*)$')
  local deadline = shard.now + tonumber(hold_for)
  local exp, now = deadline - tonumber(margin), int(shard.now)
  t = {
    tonumber(version), deadline, exp,
    'held\t' .. int(deadline) .. '\t' .. int(exp) .. '\t' .. now .. '\t' .. now .. '\t' .. mode .. '\t',
    '\t\t' .. int(shard.version) .. '\t',
    '\t' .. key_ttl .. '\t',
    '\t' .. plain(gate) .. '\t\t\t',
  }
  terms_known[text] = t
  return t
end

local function quota_of(text)
  local q = quotas_known[text]
  if not q then
    local amount, max, from, to = match(text, '^(%d+) (%d+) (%d+) (%d+)$')
    q = { tonumber(amount), tonumber(max), tonumber(from), tonumber(to), amount }
    quotas_known[text] = q
  end
  return q
end

-- Callers sum equal lines and limits; should one not, they are counted together
-- here: nobody gets more than there is. k is where the limits begin in a.
local function limits_verdict(a, k, m)
  local asked = m > 1 and {}
  for i = 1, m do
    local field, quota = a[k], quota_of(a[k + 1])
    if shard.now < quota[3] or shard.now >= quota[4] then return { 'window', shard.now } end
    local l, amount, max = read_limit(field), quota[1], quota[2]
    if asked then
      amount = (asked[field] or 0) + amount
      asked[field] = amount
    end
    if l[1] + amount > max then
      if l[1] - l[2] + amount > max then return { 'limit', i } end
      return { 'pending', i }
    end
    k = k + 2
  end
  return nil
end

-- j is where the lines begin in a
local function stock_verdict(a, j, n)
  local all_held
  local asked = n > 1 and {}
  for i = 1, n do
    local cell, units = a[j], tonumber(a[j + 1])
    local c = read_cell(cell)
    if not c then return { 'unknown', i } end
    if asked then
      units = (asked[cell] or 0) + units
      asked[cell] = units
    end
    if c[AVAILABLE] < units then
      local left = c[AVAILABLE] + c[HELD] + c[IN_DOUBT]
      if left < units then return { 'sold_out', i, c[AVAILABLE], left, shard.seq } end
      all_held = all_held or { 'all_held', i, c[AVAILABLE], left, shard.seq }
    end
    j = j + 2
  end
  return all_held
end

local FIRST_LINE = 9

function reads.reserve(a)
  want(wanted_records, a[1])
  if a[5] ~= '' then want(wanted_bindings, a[5]) end
  if a[7] ~= '' then want(wanted_bindings, ref_field(a[7])) end
  local k = FIRST_LINE
  for _ = 1, tonumber(a[8]) do
    want_cell(a[k])
    k = k + 2
  end
  for _ = 1, tonumber(a[k]) do
    want(wanted_limits, a[k + 1])
    k = k + 2
  end
end

function operations.reserve(a)
  local id = a[1]
  local r = read_record(id)
  if r and r[STATE] == 'tombstone' then return { 'gone' } end
  if r then
    -- written again, because WAIT counts from what its own connection wrote: a
    -- repeat must not be sold to the buyer before a replica has it
    dirty = true
    return { 'ok', r[STATE], r[DEADLINE], r[EXP], shard.epoch, r[CREATED] }
  end
  if not shard.exists then return { 'no_sale' } end

  local n = tonumber(a[8])
  local first_limit = FIRST_LINE + 2 * n + 1
  local m = tonumber(a[first_limit - 1])
  local buyer, guard, print, ref = a[4], plain(a[5]), plain(a[6]), plain(a[7])
  local line_words = concat(a, ' ', FIRST_LINE, first_limit - 2)
  -- before anything that may have changed since: a winner who asks again hears of
  -- what he has
  local found = bound_verdict(guard, print, ref, buyer, line_words)
  if found then return { 'bound', unpack(found) } end
  if shard.time > tonumber(a[2]) then return { 'late' } end
  local terms = terms_of(a[3])
  if shard.version ~= terms[1] then return { 'version', shard.version } end
  local refusal = window_verdict() or limits_verdict(a, first_limit, m) or stock_verdict(a, FIRST_LINE, n)
  if refusal then return refusal end

  for j = FIRST_LINE, first_limit - 2, 2 do move(a[j], tonumber(a[j + 1]), AVAILABLE, HELD) end
  local charge_words = ''
  for k = first_limit, first_limit + 2 * (m - 1), 2 do
    local field, quota = a[k], quota_of(a[k + 1])
    local l = read_limit(field)
    write_limit(field, l[1] + quota[1], l[2] + quota[1])
    charge_words = charge_words .. (charge_words ~= '' and ' ' or '') .. field .. ' ' .. quota[5]
  end
  -- its fields are needed only if another operation of this call is about it
  local text = terms[4] .. buyer .. '\t' .. line_words .. '\t' .. charge_words .. terms[5] .. guard .. '\t' .. print .. terms[6] .. ref .. terms[7]
  write_record(id, text)
  zadd.deadlines[id] = terms[2]
  bind(guard, id)
  if ref ~= '' then bind(ref_field(ref), id) end
  write_journal('held', id, '', line_words, buyer, '', text)
  return { 'ok', 'held', terms[2], terms[3], shard.epoch, shard.now }
end
