-- confirm.lua: the shop took the order; the units are sold. A reservation that Redis
-- has lost since then is recreated from its token.
--
-- a[1]  id       reservation id
-- a[2]  word     whose word it is: answer (the gate saw the shop's answer) | shop (its API call) |
--                operator | probe | told (an edge was promised it, and tells it again after a
--                fence that has lost it, see fence.lua)
-- a[3]  cause    why, or who says so
-- a[4]  epoch    of the shard that held the stock, as the token says; '': there is no token,
--                and no more arguments are needed
-- a[5]  buyer    hash of the buyer
-- a[6]  created  ms
-- a[7]  exp      ms
-- a[8]  ref      the shop's own name of the order, or ''
-- a[9]  mode     response | backend
-- a[10] n        number of lines, then for each: cell, quantity
-- …     m        number of limits, then for each: field, amount
--
-- Returns { 'ok', 'confirmed' }
--         { 'ok', 'unbacked' }          the units are gone, and the answer cannot be taken back
--         { 'conflict', state }         the shop has released it itself, or it is an offer, see waitlist.lua
--         { 'refund_needed', state }    the units are gone; state is unknown for what Redis has lost
--         { 'not_found' } { 'restoring' }, see not_found
--
-- uses bindings.lua: bind_again, bind_named, is_key, list_under, named_by, others_of, read_binding, ref_field, unbind
-- uses changes.lua: BUYER, CAUSE, CHARGED, CHARGES, GUARD, LINES, MODE, PENDING, PRINT, REF, STATE, complete, move, operations, pairs_of, plain, read_cell, read_limit, read_record, reads, text_of, want, wanted_bindings, wanted_records, write_journal, write_limit, write_record
-- uses shard.lua: AVAILABLE, CONFIRMED, HELD, META_KEY, bindings, call, int, match, records, shard
-- uses states.lua: all_available, change_state, confirming, give_back, index, read_hold, settle_charges, stands_as, swapped, unindex, want_stock

-- the buyer has paid: the limits are charged without a check
local function charge_again(charges)
  for _, charge in ipairs(charges) do
    local l = read_limit(charge[1])
    write_limit(charge[1], l[CHARGED] + charge[2], l[PENDING])
  end
end

-- is_forgotten reports whether an ended reservation whose token expired at exp may have
-- been dropped, see forget.lua: then it was not lost.
local function is_forgotten(exp)
  local forgotten = call('HGET', KEYS[META_KEY], 'forgotten')
  return forgotten and exp <= tonumber(forgotten)
end

-- was_deleted reports whether the sale of an epoch was deleted on purpose: the one that was loaded
-- again under its id has lost nothing of it, and must not sell its orders again.
local function was_deleted(epoch) return epoch <= tonumber(call('HGET', KEYS[META_KEY], 'deleted') or '-1') end

-- may_be_lost reports whether Redis can have lost a reservation: one of an older epoch, or one
-- that was made before a fence which could not restore everything, see fence.lua. Others that
-- ended stay until they are forgotten.
local function may_be_lost(epoch, created)
  if epoch ~= shard.epoch then return epoch < shard.epoch end
  return created <= tonumber(call('HGET', KEYS[META_KEY], 'lost') or '-1')
end

local function words_of_pairs(list)
  local words = {}
  for i, one in ipairs(list) do words[i] = one[1] .. ' ' .. int(one[2]) end
  return table.concat(words, ' ')
end

-- begin_sold makes a reservation that is sold from its beginning, or unbacked where its units are
-- not there. It returns its state.
local function begin_sold(id, lines, charges, made)
  local state = all_available(lines) and 'confirmed' or 'unbacked'
  if state == 'confirmed' then
    for _, line in ipairs(lines) do move(line[1], line[2], AVAILABLE, CONFIRMED) end
    charge_again(charges)
  end
  local r = complete({ state, made.exp, made.exp, made.created, shard.now, made.mode, made.buyer, words_of_pairs(lines), words_of_pairs(charges),
    plain(made.cause), shard.version })
  r[REF] = plain(made.ref)
  index(id, state, shard.now)
  write_record(id, r)
  bind_again(id, r, state)
  write_journal(state == 'confirmed' and 'recreated' or state, id, '', r[LINES], r[BUYER], made.cause, text_of(id))
  return state
end

local function recreate(a, tombstone)
  local id, epoch = a[1], tonumber(a[4] or '')
  if shard.merging then return { 'restoring' } end
  if not shard.exists or not epoch or a[2] ~= 'told' and not may_be_lost(epoch, tonumber(a[6])) or is_forgotten(tonumber(a[7])) or was_deleted(epoch) then
    return { 'not_found' }
  end
  local lines, charges, k = {}, {}, 11
  for i = 1, tonumber(a[10]) do
    lines[i] = { a[k], tonumber(a[k + 1]) }
    k = k + 2
  end
  for i = 1, tonumber(a[k]) do
    charges[i] = { a[k + 1], tonumber(a[k + 2]) }
    k = k + 2
  end
  if #lines == 0 then return { 'not_found' } end
  if a[2] ~= 'told' and not all_available(lines) then return { 'refund_needed', 'unknown' } end
  if tombstone then unindex(id, 'tombstone') end
  return { 'ok', begin_sold(id, lines, charges, { exp = tonumber(a[7]), created = a[6], mode = a[9], buyer = a[5], ref = a[8], cause = a[3] }) }
end

-- how many carts of one order undo_swap looks through
local MOST_SWAPS = 64

-- undo_swap gives a hold its units back that were held for another cart since, if they are held
-- still: there is one order under its ref, and that has been sold with this hold's token.
local function undo_swap(id, r)
  local ids, held, back, seen = { id .. '+' }, {}, {}, {}
  local last = read_binding(ref_field(r))
  for _ = 1, MOST_SWAPS do -- those that took the place of one another since
    local other = last and last ~= id and read_record(last)
    if not other then break end
    ids[#ids + 1] = last
    last = not is_key(other[GUARD]) and match(other[PRINT], '^%+(.+)$')
    if last then ids[#ids + 1] = last .. '+' end
  end
  for _, other_id in ipairs(ids) do
    local other = not seen[other_id] and read_record(other_id)
    seen[other_id] = true
    if other and other[STATE] == 'held' and other[BUYER] == r[BUYER] then
      held[#held + 1] = other_id
      for _, line in ipairs(pairs_of(other[LINES])) do back[line[1]] = (back[line[1]] or 0) + line[2] end
    end
  end
  local asked = {}
  for _, line in ipairs(pairs_of(r[LINES])) do
    local c = read_cell(line[1])
    asked[line[1]] = (asked[line[1]] or 0) + line[2]
    if not c or c[AVAILABLE] + (back[line[1]] or 0) < asked[line[1]] then return end
  end
  for _, other_id in ipairs(held) do
    local other = read_record(other_id)
    give_back(other, true)
    change_state(other_id, other, 'released', swapped)
  end
end

-- Most confirms are of a held hold with nothing special. Of its record they need a few fields, and
-- change three: so it is not taken apart and written again, which would be most of the work. By
-- their ids: { text, deadline to created, mode, buyer, lines, charges, version to the end, guard }
local holds = {}
-- a held hold that no counter of unpaid holds counts: all fields of a record, see shard.lua
local held_record = '^held\t(%d+\t%d+\t%d+\t)%d+(\t%a+\t)([^\t]*)\t([^\t]*)\t([^\t]*)\t[^\t]*(\t%d+\t([^\t]*)\t[^\t]*\t%d*' ..
  string.rep('\t[^\t]*', 4) .. '\t\t)$'

if not shard.queue then
  read_hold = function(id, text)
    local h = { text, match(text, held_record) }
    if not h[2] or h[3] == '\toffer\t' then return false end
    holds[id] = h
    want_stock(h[5], h[6])
    local guard = h[8]
    if guard ~= '' and not is_key(guard) and bindings[guard] == nil then want(wanted_bindings, guard) end
    return true
  end
end

-- confirm_hold does with such a hold what change_state does
local function confirm_hold(id, h, cause)
  local _, times, mode, buyer, lines, charges, rest, guard = unpack(h)
  settle_charges(charges)
  for _, line in ipairs(pairs_of(lines)) do
    read_cell(line[1])
    move(line[1], line[2], HELD, CONFIRMED)
  end
  if not is_key(guard) then unbind(id, guard) end
  unindex(id, 'held')
  write_record(id, 'confirmed\t' .. times .. int(shard.now) .. mode .. buyer .. '\t' .. lines .. '\t' .. charges .. '\t' .. plain(cause) .. rest)
  write_journal('confirmed', id, 'held', lines, buyer, cause, '')
end

function reads.confirm(a)
  want(wanted_records, a[1])
  confirming[a[1]] = true
end

local now_sold = { 'ok', 'confirmed' }

local function confirm(a)
  local id, word, cause = a[1], a[2], a[3]
  local h = holds[id]
  if h and not shard.queue and word ~= 'operator' and records[id] == h[1] then -- no operation before this one has changed it, or counted it at the shop
    confirm_hold(id, h, cause)
    return now_sold
  end
  local r = read_record(id)
  if not r or r[STATE] == 'tombstone' then return recreate(a, r) end
  local state = r[STATE]
  if r[MODE] == 'offer' then return { 'conflict', stands_as(r) } end -- there is no order
  if state == 'confirmed' then return { 'ok', state } end
  if state == 'held' or state == 'in_doubt' then
    settle_charges(r[CHARGES])
    change_state(id, r, 'confirmed', cause)
    return now_sold
  end
  -- released, expired or unbacked: the units are back on sale
  if state == 'released' and r[CAUSE] == swapped then
    undo_swap(id, r)
  elseif word == 'shop' and state == 'released' then
    return { 'conflict', state }
  end
  if not all_available(pairs_of(r[LINES])) then
    if word ~= 'answer' and word ~= 'told' then return { 'refund_needed', state } end
    if state ~= 'unbacked' then change_state(id, r, 'unbacked', cause) end
    return { 'ok', 'unbacked' }
  end
  charge_again(pairs_of(r[CHARGES]))
  change_state(id, r, 'confirmed', cause)
  return { 'ok', 'confirmed' }
end

-- list_sold makes a confirmed reservation findable by its ref: where there is no room, in the place
-- of the last one that is not confirmed
local function list_sold(ref, id)
  if ref == '' then return end
  for _, other in ipairs(named_by(ref)) do
    if other == id then return end
  end
  list_under(ref, id)
  local ids, more = named_by(ref)
  if ids[#ids] == id then return end
  for i = #ids, 1, -1 do
    local other = read_record(ids[i])
    if not other or other[STATE] ~= 'confirmed' then
      ids[i] = id
      return bind_named(ref, ids[1], others_of(ids, more))
    end
  end
end

-- A payment's webhook is refused until it finds what an operator has confirmed by its ref. Of other
-- confirms that would be a read more for each.
function operations.confirm(a)
  local reply = confirm(a)
  if a[2] == 'operator' then
    local r = read_record(a[1])
    if r and r[STATE] == 'confirmed' then list_sold(r[REF], a[1]) end
  end
  return reply
end
