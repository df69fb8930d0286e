-- repair.lua: set values that a reconciliation has found wrong to what they must be. It
-- is the only operation of its call: it reads stored data, not what other operations
-- have recorded.
--
-- What is wrong was seen at one entry of the journal, and sales have gone on since. A
-- counter gets the difference, so that what was sold meanwhile counts; anything else is
-- set only if it still is what was found. A repeated call, or one after another
-- caller's that saw the same, changes nothing: it is refused when anything was repaired
-- after what it has seen.
--
-- a[1]  epoch  of the shard that was examined
-- a[2]  seq    the newest entry of the journal when it was
-- a[3]  cause  who, and in which run
-- a[4]  n      number of repairs, then for each: part and name as in examine.lua, found, wanted (both
--              '' for nothing, else = and the value as it is kept), why, a few words for the journal,
--              and the record that goes with it, so that edges learn what it binds, or ''
--
-- Returns { 'ok', done, … } for each 1, or 0: it is not what was found any more
--         { 'conflict', seq }  something was repaired in the entry seq, after what was examined
--         { 'no_sale' }        another epoch, or nothing is known
--
-- uses bindings.lua: bind
-- uses changes.lua: CHARGED, PENDING, changed, notice, operations, parse_limit, part_keys, write_journal, write_limit, write_record, zadd, zrem
-- uses shard.lua: META_KEY, call, cells, find, int, limits, parse_cell, shard
-- uses states.lua: read_unpaid
-- uses unpaid.lua: parse_unpaid

local function numbers_of(text)
  local out = {}
  if not text or not find(text, '^[-%d ]+$') then return out end
  for n in string.gmatch(text, '%-?%d+') do out[#out + 1] = tonumber(n) end
  return out
end

-- moved_on returns the numbers of a counter that was found wrong, as they are now and
-- put right; nil: it has no such numbers
local function moved_on(now, found, wanted, n)
  local a, b, c = numbers_of(now), numbers_of(found), numbers_of(wanted)
  if #a ~= n or #b ~= n or #c ~= n then return nil end
  for i = 1, n do a[i] = a[i] + c[i] - b[i] end
  return a
end

local function put_cell(name, now, found, wanted)
  local c = moved_on(now, found, wanted, 5)
  if not c then
    if now ~= found then return false end
    c = parse_cell(wanted)
  end
  cells[name] = c
  changed.cells[name] = true
  notice = 'stock'
  return true
end

local function put_limit(name, now, found, wanted)
  local l = moved_on(now or '0 0', found or '0 0', wanted or '0 0', 2)
  if not l then
    if now ~= found then return false end
    l = parse_limit(wanted)
  end
  limits[name] = l
  write_limit(name, l[CHARGED], l[PENDING])
  return true
end

-- put_unpaid corrects the number of held holds; no movement has the times at which others ended
local function put_unpaid(name, found, wanted)
  local c = read_unpaid(name)
  c.held = math.max(c.held + parse_unpaid(wanted).held - parse_unpaid(found).held, 0)
  changed.unpaid[name] = true
  return true
end

local function put_other(part, name, now, found, wanted)
  if now ~= found then return false end
  if part == 'record' then
    write_record(name, wanted)
  elseif part == 'binding' then
    bind(name, wanted)
  elseif part == 'adjustment' then
    changed.adjustments[name] = wanted
  elseif part == 'return' then
    changed.returns[name] = wanted
  elseif wanted then
    zadd[part][name] = tonumber(wanted)
  else
    zrem[part][name] = true
  end
  return true
end

local function put(part, name, found, wanted)
  local now
  if zadd[part] then
    now = call('ZSCORE', KEYS[part_keys[part]], name)
  else
    now = call('HGET', KEYS[part_keys[part]], name)
  end
  if part == 'cell' then return put_cell(name, now, found, wanted) end
  if part == 'limit' then return put_limit(name, now, found, wanted) end
  if part == 'unpaid' then return put_unpaid(name, found, wanted) end
  return put_other(part, name, now, found, wanted)
end

function operations.repair(a)
  if not shard.exists or shard.epoch ~= tonumber(a[1]) then return { 'no_sale' } end
  local last = tonumber(call('HGET', KEYS[META_KEY], 'repaired') or '0')
  if last > tonumber(a[2]) then return { 'conflict', last } end
  local out, any, k = { 'ok' }, false, 5
  for i = 1, tonumber(a[4]) do
    local part, name = a[k], a[k + 1]
    local found, wanted = false, false
    if a[k + 2] ~= '' then found = string.sub(a[k + 2], 2) end
    if a[k + 3] ~= '' then wanted = string.sub(a[k + 3], 2) end
    out[1 + i] = 0
    if put(part, name, found, wanted) then
      write_journal('repaired', name, '', '', '', a[3] .. ' ' .. part .. ' ' .. a[k + 4], a[k + 5])
      out[1 + i], any = 1, true
    end
    k = k + 6
  end
  if any then changed.meta.repaired = int(shard.seq) end
  return out
end
