-- changes.lua: what operations read of a shard, and what they note for flush.lua to
-- write. It comes after shard.lua, where the layout is.
--
-- uses shard.lua: ADJUSTMENTS_KEY, BINDINGS_KEY, CELLS_KEY, DEADLINES_KEY, IN_DOUBT_KEY, LIMITS_KEY, RECORDS_KEY, RETURNS_KEY, TOMBSTONES_KEY, UNBACKED_KEY, UNPAID_KEY, call, cells, find, int, limits, match, parse_cell, records, shard

local STATE, DEADLINE, EXP, CREATED, CHANGED, MODE, BUYER, LINES, CHARGES, CAUSE, VERSION = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local GUARD, PRINT, KEY_TTL, REF, GATE, RETURNED, PROBES, UNPAID = 12, 13, 14, 15, 16, 17, 18, 19
local FIELDS = 19
-- of a limit: what it has counted, how much of that holds have not resolved, and whether there is a counter
local CHARGED, PENDING, COUNTED = 1, 2, 3
local numbers = { DEADLINE, EXP, CREATED, CHANGED, VERSION, KEY_TTL }

-- of the stock of a cell
local MAX_UNITS = 1e12

-- the keys by the names that operations use
local part_keys = {
  cell = CELLS_KEY, limit = LIMITS_KEY, record = RECORDS_KEY, deadlines = DEADLINES_KEY, in_doubt = IN_DOUBT_KEY, unbacked = UNBACKED_KEY,
  tombstones = TOMBSTONES_KEY, adjustment = ADJUSTMENTS_KEY, binding = BINDINGS_KEY, ['return'] = RETURNS_KEY, unpaid = UNPAID_KEY,
}

local operations = {}
-- for each operation the data that it will read, so that a call reads it in bulk
local reads = {}

local texts = {} -- of records that are changed, as they will be kept
local changed = { cells = {}, limits = {}, records = {}, meta = {}, adjustments = {}, bindings = {}, returns = {}, unpaid = {} }
local zadd = { deadlines = {}, in_doubt = {}, unbacked = {}, tombstones = {} }
local zrem = { deadlines = {}, in_doubt = {}, unbacked = {}, tombstones = {} }
local journal = {}
local entries = {} -- of the journal that are written as another server had them: { number, time, movements }
local notice = false -- what the other edges should look at again: sale | stock
local dirty = false

local function split(s, pattern)
  local out = {}
  for word in string.gmatch(s, pattern) do out[#out + 1] = word end
  return out
end

local function read_cell(name)
  local c = cells[name]
  if c == nil then
    c = parse_cell(call('HGET', KEYS[CELLS_KEY], name))
    cells[name] = c
  end
  return c
end

-- units move from one column of a cell to another; a nil column is outside
local function move(name, quantity, from, to)
  local c = cells[name]
  if from then c[from] = c[from] - quantity end
  if to then c[to] = c[to] + quantity end
  changed.cells[name] = true
end

local function parse_limit(text)
  if not text then return { 0, 0, false } end
  local charged, pending = match(text, '^(%d+) (%d+)')
  return { tonumber(charged), tonumber(pending), true }
end

local function read_limit(field)
  local l = limits[field]
  if not l then
    l = parse_limit(call('HGET', KEYS[LIMITS_KEY], field))
    limits[field] = l
  end
  return l
end

local function write_limit(field, charged, pending)
  local l = limits[field]
  l[CHARGED], l[PENDING], l[COUNTED] = math.max(charged, 0), math.max(pending, 0), true
  changed.limits[field] = true
end

-- complete fills in missing fields of a record
local function complete(r)
  for i = 1, FIELDS do r[i] = r[i] or '' end
  for _, i in ipairs(numbers) do r[i] = tonumber(r[i]) or 0 end
  return r
end

local RECORD = '^' .. string.rep('([^\t]*)\t', FIELDS)

local function parse_record(text)
  local r = { match(text, RECORD) }
  if not r[STATE] then return complete(split(text, '([^\t]*)\t')) end -- of an older edge
  r[DEADLINE], r[EXP], r[CREATED] = tonumber(r[DEADLINE]) or 0, tonumber(r[EXP]) or 0, tonumber(r[CREATED]) or 0
  r[CHANGED], r[VERSION], r[KEY_TTL] = tonumber(r[CHANGED]) or 0, tonumber(r[VERSION]) or 0, tonumber(r[KEY_TTL]) or 0
  return r
end

-- read_record returns the fields of a reservation; false: there is none
local function read_record(id)
  local r = records[id]
  if r == nil then
    r = call('HGET', KEYS[RECORDS_KEY], id)
    records[id] = r
  end
  if r and type(r) == 'string' then
    r = parse_record(r)
    records[id] = r
  end
  return r
end

-- a text from outside must not contain the end of a record's field
local function plain(text)
  if find(text, '^%C*$') then return text end
  return (string.gsub(text, '%c', ' '))
end

-- write_record stores a record: its fields, or its text, or false to delete it
local function write_record(id, r)
  records[id] = r
  texts[id] = nil
  changed.records[id] = true
  dirty = true
end

-- text_of is a record as it is stored. Code that changes a record calls write_record,
-- which rebuilds its text.
local function text_of(id)
  local r = records[id]
  if type(r) == 'string' then return r end
  local text = texts[id]
  if not text then
    text = r[STATE] .. '\t' .. int(r[DEADLINE]) .. '\t' .. int(r[EXP]) .. '\t' .. int(r[CREATED]) .. '\t' .. int(r[CHANGED]) .. '\t' ..
      r[MODE] .. '\t' .. r[BUYER] .. '\t' .. r[LINES] .. '\t' .. r[CHARGES] .. '\t' .. r[CAUSE] .. '\t' .. int(r[VERSION]) .. '\t' ..
      r[GUARD] .. '\t' .. r[PRINT] .. '\t' .. int(r[KEY_TTL]) .. '\t' .. r[REF] .. '\t' .. r[GATE] .. '\t' ..
      r[RETURNED] .. '\t' .. r[PROBES] .. '\t' .. r[UNPAID] .. '\t'
    texts[id] = text
  end
  return text
end

-- pairs_of("a 1 b 2") → { {"a", 1}, {"b", 2} }; its result must not be changed
local pairs_known = {}
local function pairs_of(s)
  local out = pairs_known[s]
  if out then return out end
  local name, n = match(s, '^(%S+) (%d+)$')
  if name then
    out = { { name, tonumber(n) } }
  else
    out = {}
    for name, n in string.gmatch(s, '(%S+) (%d+)') do out[#out + 1] = { name, tonumber(n) } end
  end
  pairs_known[s] = out
  return out
end

-- was: the state in which the reservation was, '' where there was none or the movement
-- is not about one. record: the text of its record after it, where more than
-- its state and cause is new; else ''
local function write_journal(kind, id, was, lines, buyer, cause, record)
  shard.seq = shard.seq + 1
  dirty = true
  local text = kind .. '\t' .. plain(id) .. '\t' .. was .. '\t' .. lines .. '\t' .. buyer .. '\t' .. plain(cause) .. '\t' .. record
  -- only another client can have put one into a record: it would look like the next movement
  if find(text, '\n', 1, true) then text = string.gsub(text, '\n', ' ') end
  journal[#journal + 1] = text
end

-- the data that operations want to read, to read it in bulk; each cell once
local wanted_records, wanted_bindings, wanted_limits, wanted_cells, wanted_unpaid = { n = 0 }, { n = 0 }, { n = 0 }, { n = 0 }, { n = 0 }

local function want(list, name)
  local n = list.n + 1
  list.n, list[n] = n, name
end

local function want_cell(name)
  if cells[name] == nil then
    cells[name] = false
    want(wanted_cells, name)
  end
end

-- not_found answers for a reservation that is not here
local function not_found()
  if shard.merging then return { 'restoring' } end
  return { 'not_found' }
end

local function want_reservation(a) want(wanted_records, a[1]) end

-- read_wanted reads wanted data that was not read before into known
local function read_wanted(list, key, known, parse)
  for i = (list.read or 0) + 1, list.n, 1000 do
    local last = math.min(i + 999, list.n)
    local values = call('HMGET', key, unpack(list, i, last))
    if parse then
      for j = i, last do known[list[j]] = parse(values[j - i + 1]) end
    else
      for j = i, last do known[list[j]] = values[j - i + 1] end
    end
  end
  list.read = list.n
end
