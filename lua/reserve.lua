-- reserve.lua: hold stock for attempts, or say why not. All or nothing for each of
-- them: every line and every limit passes, or nothing is charged. It stands alone after
-- shard.lua: what attempts have in common comes once, the rest in columns, so that a
-- column is read as it comes.
--
-- KEYS[…]  those of shard.lua
-- KEYS[19] shadow   hash    only in a dry run, which changes nothing but this, see dryrun.lua
--
-- ARGV[1]  schema     the newest key schema that the caller understands
-- ARGV[2]  term       as in shard.lua
-- ARGV[3]  known      as in shard.lua
-- ARGV[4]  earliest   of the times until when the attempts may be made
-- ARGV[5]  not_after  for each attempt ms by Redis's own time, with a space between two; a later run
--                     is refused
-- ARGV[6]  n          number of attempts
-- ARGV[7]  columns    1: there is a column of refs; 2: one of orders; 3: both; 0: no attempt has either
-- ARGV[8]  unpaid     number of fields in the last column
-- ARGV[9]  k          number of different profiles, then the profiles: "version hold_for margin mode unpaid
--                     lines cell quantity … amount max from to …":
--                     version of the sale that the caller knows, another one changes nothing; told: what was
--                     promised is told again after a fence, whatever the sale is like now;
--                     hold_for, ms from now until the deadline; margin, ms that the token expires
--                     before it; mode, response | backend, what the deadline does, or
--                     queued:mode:n:per:at_once:most:bytes:longest:edge:gate, for orders that wait for the
--                     shop where there are others before them: at most n in per ms (0: any number) go to
--                     the shop and at_once may be there, at most so many wait, with so many bytes, each for
--                     longest ms; edge and gate as in queue.lua. waits: or goes: for queued: when it is told
--                     again after a fence that it waits, or that it went to the shop at once; unpaid,
--                     n:at_once:ended:within, n counters of unpaid holds, in each of which at most so
--                     many may be held, and fewer have ended within so many ms; lines, their number, then each; then of each limit what is charged, and its window
--                     [from, to) in ms by Redis's own time; a max below 0 counts up to -max and refuses nothing
-- ARGV[…]  profiles   the place of each attempt's profile among them; only where k is more than 1
-- …        id         reservation id; the same id again returns the same answer
-- …        guard      the binding of the idempotency key, or of the buyer and the lines; '': none
-- …        ref        the shop's own name of the order behind b| (of its buyer) or s| (shared), or ''
-- …        buyer      hash of the buyer
-- …        rest       of the record, from behind the buyer to its end; in a dry run, see dryrun.lua
-- …        order      what is to be sent to the shop, packed, or ''; only with a column of orders
-- …        field      of each limit of each attempt
-- …        owed       the counters of unpaid holds of each attempt, see unpaid.lua
--
-- Returns { time, lead, seq, term, reply, … } as in shard.lua, with one reply per attempt:
--         { 'ok', state, deadline, exp, epoch, created }; of a new one as a text, with spaces, and
--                                          with a seventh value if a max below 0 is exceeded: i, the limit
--                                          is full; -i, holds may still free it
--         { 'ok', 'waiting', deadline, exp, epoch, created }  the same for an order that waits
--         { 'full' }                       too many orders wait; the stock is there
--         { 'gone' }                       released before it was reserved
--         { 'bound', by, id, state, same, created, deadline, exp, changed, epoch }
--                                          the guard or the ref belongs to another one, see bindings.lua
--         { 'version', version } { 'late' } { 'no_sale' }
--         { 'not_started', starts, now } { 'paused' } { 'ended' } { 'closed' }
--         { 'window', now }                a limit's window is not the current one
--         { 'limit', i } { 'pending', i }  the i-th limit is full; pending: holds may still free it
--         { 'unpaid', wait }               too many unpaid holds; wait, ms until fewer of them count that
--                                          have ended; 0: one that is held may end first
--         { 'unknown', i } { 'sold_out', i, available, left, seq } { 'all_held', i, available, left, seq }
--         (left: the units that are available or may come back; seq: the journal's newest number then)
--         { 'not_your_turn', i }           people wait for the i-th item, see waitlist.lua
--         { 'schema', schema }             a newer edge has changed the layout: nothing was touched
--         { 'restoring' }                  half of the shard is missing: nothing was touched
--         { 'fenced' }                     see fence.lua: nothing was touched
--
-- uses shard.lua: AVAILABLE, BINDINGS_KEY, CELLS_KEY, DEADLINES_KEY, HELD, JOURNAL_KEY, LIMITS_KEY, META_KEY, RECORDS_KEY, SCHEMA_OF_QUEUES, SCHEMA_OF_UNPAID, UNPAID_KEY, WAITLIST_KEY, bindings, call, cell_text, cells, closed_answer, concat, fenced, int, match, parse_cell, records, shard, time
-- uses verdicts.lua: limits_verdict, read_profile, stock_verdict, unpaid_verdict

local SHADOW_KEY = 19

local ARGV, KEYS = ARGV, KEYS
local earliest, n, k = tonumber(ARGV[4]), tonumber(ARGV[6]), tonumber(ARGV[9])
local with_refs, with_orders = ARGV[7] == '1' or ARGV[7] == '3', tonumber(ARGV[7]) > 1
local owed_at = #ARGV - tonumber(ARGV[8])
local now, seq = shard.now, shard.seq
local out = { time, shard.lead, seq, shard.term or '' }

do
  local refusal
  if shard.schema > tonumber(ARGV[1]) then refusal = { 'schema', shard.schema }
  elseif shard.restoring then refusal = { 'restoring' }
  elseif fenced(ARGV[2], ARGV[3]) then refusal = { 'fenced' } end
  if refusal then
    for i = 1, n do out[4 + i] = refusal end
    return out
  end
end

local closed = closed_answer()
local queue -- functions of queue.lua

-- the profiles, with what follows from them for a record, its movement and its answer
local profiles, wanted = {}, {}
for i = 1, k do
  local profile = read_profile(ARGV[9 + i])
  local hold_for, margin, mode = profile.hold_for, profile.margin, profile.mode
  local ends, exp, at = int(time + hold_for), int(time + hold_for - margin), int(time)
  local told, queued = match(mode, '^(%a+):(%S+)$')
  if told then
    local as, per, every, at_once, most, bytes, longest, home, gate = match(queued, '^(%a+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%S+):(%S+)$')
    queue = queue or load_queue()
    longest, mode = tonumber(longest), as
    profile.queue = {
      told = told ~= 'queued' and told, as = as, every = queue.every(tonumber(per), tonumber(every)),
      at_once = tonumber(at_once), most = tonumber(most), bytes = tonumber(bytes), home = home, gate = gate, due = int(now + longest),
      head = 'held\t' .. int(now + longest) .. '\t' .. int(time + longest - margin) .. '\t' .. at .. '\t' .. int(now) .. '\tqueued\t',
      answer = 'ok waiting ' .. int(time + longest) .. ' ' .. int(time + longest - margin) .. ' ' .. int(shard.epoch) .. ' ' .. at,
    }
  end
  profile.refusal = closed
  if tonumber(profile.version) ~= shard.version then profile.refusal = profile.version ~= 'told' and { 'version', shard.version } end
  profile.due = int(now + hold_for)
  profile.head = 'held\t' .. profile.due .. '\t' .. exp .. '\t' .. at .. '\t' .. int(now) .. '\t' .. mode .. '\t'
  profile.between = '\t\t' .. profile.lines .. '\t'
  profile.answer = 'ok held ' .. ends .. ' ' .. exp .. ' ' .. int(shard.epoch) .. ' ' .. at
  for _, name in ipairs(profile.cells) do
    if cells[name] == nil then
      cells[name] = false
      wanted[#wanted + 1] = name
    end
  end
  profiles[i] = profile
end

-- behind which places of ARGV the columns are
local profiles_at = 9 + k
local ids_at = k > 1 and profiles_at + n or profiles_at
local guards_at = ids_at + n
local refs_at = guards_at + n
local buyers_at = with_refs and refs_at + n or refs_at
local rests_at = buyers_at + n
local orders_at = rests_at + n
local fields_at = with_orders and orders_at + n or orders_at

-- read returns the fields of a hash that are in a list; Lua's stack is small
local function read(key, list, first, last)
  if first > last then return {} end
  if last - first < 1000 then return call('HMGET', key, unpack(list, first, last)) end
  local all = {}
  for i = first, last, 1000 do
    for _, value in ipairs(call('HMGET', key, unpack(list, i, math.min(i + 999, last)))) do all[#all + 1] = value end
  end
  return all
end

local kept = read(KEYS[RECORDS_KEY], ARGV, ids_at + 1, ids_at + n)
local guarded = read(KEYS[BINDINGS_KEY], ARGV, guards_at + 1, guards_at + n)

-- the fields of refs, see bindings.lua: of the buyer, and of the first reservation
local refs, own_fields, first_fields = {}, {}, {}
local owned, named = {}, {}
if with_refs then
  for i = 1, n do
    refs[i] = string.sub(ARGV[refs_at + i], 3)
    own_fields[i], first_fields[i] = 'b|' .. ARGV[buyers_at + i] .. '|' .. refs[i], 'r|' .. refs[i]
  end
  owned, named = read(KEYS[BINDINGS_KEY], own_fields, 1, n), read(KEYS[BINDINGS_KEY], first_fields, 1, n)
end
local counted = read(KEYS[LIMITS_KEY], ARGV, fields_at + 1, owed_at)
local owing = read(KEYS[UNPAID_KEY], ARGV, owed_at + 1, #ARGV)
for i, text in ipairs(read(KEYS[CELLS_KEY], wanted, 1, #wanted)) do cells[wanted[i]] = parse_cell(text) end
local awaited -- cells for which people wait
if shard.waitlist then
  local counts = {}
  for i, name in ipairs(wanted) do counts[i] = 'c|' .. name end
  awaited = {}
  for i, text in ipairs(read(KEYS[WAITLIST_KEY], counts, 1, #counts)) do awaited[wanted[i]] = text and match(text, '^[1-9]') and true end
end
local unpaid = {} -- counters of unpaid holds, by their fields
local parse_unpaid, unpaid_text, counting, prune
if owing[1] ~= nil then parse_unpaid, unpaid_text, counting, prune = load_unpaid() end
local charged, pending = {}, {} -- by a limit's field; pending is the part of charged that holds have not resolved
local dry_run
if KEYS[SHADOW_KEY] then
  dry_run = load_dry_run()
  dry_run.begin(wanted, charged, pending, counted, n, { ids = ids_at, guards = guards_at, refs = with_refs and refs_at, buyers = buyers_at, rests = rests_at,
    fields = fields_at, owed = owed_at })
end

-- known_answer is that of an attempt which was made before
local function known_answer(record)
  local state, deadline, exp, created, _, mode
  if type(record) == 'table' then -- an earlier attempt of this call has asked about it
    state, deadline, exp, created, _, mode = unpack(record, 1, 6)
  else
    state, deadline, exp, created, _, mode = match(record, '^([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t')
  end
  if state == 'held' and mode == 'queued' then state = 'waiting' end
  if state == 'tombstone' then return { 'gone' } end
  return { 'ok', state, (tonumber(deadline) or 0) - shard.lead, tonumber(exp) or 0, shard.epoch, tonumber(created) or 0 }
end

-- bound_answer names the reservation to which the i-th attempt's guard or ref belongs
local bound_verdict, with_named
local function bound_answer(i, profile)
  if not bound_verdict then bound_verdict, with_named = load_bindings() end
  local guard, ref = ARGV[guards_at + i], refs[i] or ''
  if bindings[guard] == nil then bindings[guard] = guarded[i] end
  if ref ~= '' then
    if bindings[own_fields[i]] == nil then bindings[own_fields[i]] = owned[i] end
    if bindings[first_fields[i]] == nil then bindings[first_fields[i]] = named[i] end
  end
  local print = match(ARGV[rests_at + i], '^\t[^\t]*\t[^\t]*\t[^\t]*\t[^\t]*\t[^\t]*\t([^\t]*)\t')
  local shared = ref ~= '' and string.sub(ARGV[refs_at + i], 1, 1) == 's'
  local found = bound_verdict(guard, print, ref, shared, ARGV[buyers_at + i], profile.lines)
  return found and { 'bound', unpack(found) }
end

-- what verdicts.lua looks at: a limit and a counter of unpaid holds by their places in ARGV
local function limit_at(place)
  local field = ARGV[place]
  if not charged[field] then
    charged[field], pending[field] = 0, 0
    local text = counted[place - fields_at]
    if text then
      local c, p = match(text, '^(%d+) (%d+)')
      charged[field], pending[field] = tonumber(c), tonumber(p)
    end
  end
  return field, charged[field], pending[field]
end

local function unpaid_at(place, after, n)
  local field = ARGV[place]
  local c = unpaid[field]
  if not c then
    c = parse_unpaid(owing[place - owed_at])
    unpaid[field] = c
  end
  local _, nth = counting(c, after, n)
  return c.held, nth
end

local nothing_back = {}

-- turn_verdict refuses units for which people wait: only offers are made of them, see offer.lua
local function turn_verdict(profile)
  if not awaited or profile.version == 'told' then return nil end
  for i, name in ipairs(profile.cells) do
    if awaited[name] then return { 'not_your_turn', i } end
  end
  return nil
end

-- queue_verdict refuses an order that would wait where there is no room. It returns whether the
-- order waits.
local function queue_verdict(i, profile)
  local o = profile.queue
  local q = queue.load()
  if o.told then return nil, o.told == 'waits' end
  if q.waiting == 0 and queue.free(o) > 0 then return nil, false end
  local size = with_orders and #ARGV[orders_at + i] or 0
  if q.waiting >= o.most or q.bytes + size > o.bytes or size == 0 then return { 'full' }, false end
  return nil, true
end

-- what will be written: fields and values as HSET takes them, scores and members
local movements, to_records, to_deadlines, to_bindings, to_limits, to_unpaid = {}, {}, {}, {}, {}, {}
local moved, bound, freed = 0, 0, {}

local function to_bind(field, value)
  bindings[field] = value
  if not value then
    freed[#freed + 1] = field
    return
  end
  to_bindings[bound + 1], to_bindings[bound + 2] = field, value
  bound = bound + 2
end
local untils = {} -- only where an attempt is late
if time > earliest then
  for word in string.gmatch(ARGV[5], '%d+') do untils[#untils + 1] = tonumber(word) end
end

-- behind which places of ARGV the present attempt has its limits and its counters of unpaid holds
local limits_behind, unpaid_behind = fields_at, owed_at
local pieces, limit_words, unpaid_words = 0, 0, 0 -- of movements, to_limits and to_unpaid
for i = 1, n do
  local id, guard = ARGV[ids_at + i], ARGV[guards_at + i]
  local profile = profiles[k > 1 and tonumber(ARGV[profiles_at + i]) or 1]
  local ref = refs[i] or ''
  local record = records[id] or kept[i]
  local answer = dry_run and dry_run.known(i, profile)
  local over, waits -- over: the limit in shadow that is full
  if answer then -- nothing is left to decide
  elseif record then
    answer = known_answer(record)
  elseif not shard.exists then
    answer = { 'no_sale' }
  else
    -- before anything that may have changed since: a repeated attempt gets its
    -- reservation
    if guarded[i] or bindings[guard] or
      ref ~= '' and (owned[i] or named[i] or bindings[own_fields[i]] or bindings[first_fields[i]]) then
      answer = bound_answer(i, profile)
    end
    answer = answer or untils[i] and time > untils[i] and { 'late' } or profile.refusal
    if not answer then answer, over = limits_verdict(profile, limits_behind, limit_at) end
    answer = answer or unpaid_verdict(profile, unpaid_behind, unpaid_at) or stock_verdict(profile, seq, nothing_back)
    if (not answer or answer[1] == 'all_held') and awaited then answer = turn_verdict(profile) or answer end
    if profile.queue and not answer then answer, waits = queue_verdict(i, profile) end
    if dry_run then answer = dry_run.decide(i, profile, limits_behind, answer) or over and profile.answer .. ' ' .. over or profile.answer end
  end
  if not answer then
    for j = 1, #profile.cells do
      local c, units = cells[profile.cells[j]], profile.units[j]
      c[AVAILABLE], c[HELD], c.moved = c[AVAILABLE] - units, c[HELD] + units, true
    end
    for j = 1, #profile.amounts do
      local field, amount = ARGV[limits_behind + j], profile.amounts[j]
      charged[field], pending[field] = charged[field] + amount, pending[field] + amount
      to_limits[limit_words + 1], to_limits[limit_words + 2] = field, int(charged[field]) .. ' ' .. int(pending[field])
      limit_words = limit_words + 2
    end
    for j = 1, profile.owed do
      local field = ARGV[unpaid_behind + j]
      local c = unpaid[field]
      c.held = c.held + 1
      prune(c, now - profile.within)
      to_unpaid[unpaid_words + 1], to_unpaid[unpaid_words + 2] = field, unpaid_text(c)
      unpaid_words = unpaid_words + 2
    end
    local buyer = ARGV[buyers_at + i]
    record = (waits and profile.queue.head or profile.head) .. buyer .. ARGV[rests_at + i]
    records[id] = record
    to_records[2 * moved + 1], to_records[2 * moved + 2] = id, record
    to_deadlines[2 * moved + 1], to_deadlines[2 * moved + 2] = waits and profile.queue.due or profile.due, id
    if guard ~= '' then to_bind(guard, id) end
    if ref ~= '' then
      to_bind(own_fields[i], id)
      if named[i] or bindings[first_fields[i]] then -- bound_answer has looked
        local first, others = with_named(ref, id)
        to_bind(first_fields[i], first)
        if others or bindings['m|' .. ref] then to_bind('m|' .. ref, others) end
      else
        to_bind(first_fields[i], id)
      end
    end
    moved, seq = moved + 1, seq + 1
    -- in pieces: Redis's Lua hashes every text that is made, byte by byte
    movements[pieces + 1], movements[pieces + 2], movements[pieces + 3] = moved > 1 and '\nheld\t' or 'held\t', id, profile.between
    movements[pieces + 4], movements[pieces + 5], movements[pieces + 6] = buyer, '\t\t', record
    pieces = pieces + 6
    answer = waits and profile.queue.answer or profile.answer
    if over then answer = answer .. ' ' .. over end
    if waits then
      queue.wait(id, seq, profile.queue, ARGV[orders_at + i])
    elseif profile.queue then
      queue.go(id, profile.queue)
    end
  end
  out[4 + i] = answer
  limits_behind, unpaid_behind = limits_behind + #profile.amounts, unpaid_behind + profile.owed
end

-- many calls a command in pieces
local function many(command, key, list)
  for i = 1, #list, 1000 do call(command, key, unpack(list, i, math.min(i + 999, #list))) end
end

if dry_run then
  dry_run.write()
  return out
end
if moved > 0 then
  local to_cells = {}
  for name, c in pairs(cells) do
    if c and c.moved then
      to_cells[#to_cells + 1] = name
      to_cells[#to_cells + 1] = cell_text(c)
    end
  end
  -- what can fail comes before the first write: of the keys only this one was not read
  call('ZCARD', KEYS[DEADLINES_KEY])
  -- the journal first, because Redis refuses a repeated sequence number there
  call('XADD', KEYS[JOURNAL_KEY], int(seq) .. '-0', 'v', '1', 'time', int(now), 'movements', concat(movements))
  many('HSET', KEYS[CELLS_KEY], to_cells)
  many('HSET', KEYS[LIMITS_KEY], to_limits)
  many('HSET', KEYS[RECORDS_KEY], to_records)
  many('ZADD', KEYS[DEADLINES_KEY], to_deadlines)
  many('HDEL', KEYS[BINDINGS_KEY], freed)
  many('HSET', KEYS[BINDINGS_KEY], to_bindings)
  many('HSET', KEYS[UNPAID_KEY], to_unpaid)
  if queue and queue.write(many) and not shard.queue then call('HSET', KEYS[META_KEY], 'queue', '1', 'schema', int(math.max(shard.schema, SCHEMA_OF_QUEUES))) end
  -- from now on an edge that does not know these counters leaves the shard alone
  if to_unpaid[1] and shard.schema < SCHEMA_OF_UNPAID then call('HSET', KEYS[META_KEY], 'schema', int(SCHEMA_OF_UNPAID)) end
  call('HSET', KEYS[META_KEY], 'seq', int(seq), 'clock', int(now))
end
if shard.lead_changed then call('HSET', KEYS[META_KEY], 'lead', string.format('%.0f', shard.lead)) end
out[3] = seq
return out
