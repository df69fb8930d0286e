-- flush.lua: write what the operations have recorded, all or nothing. It comes before
-- dispatch.lua in every script.
--
-- Redis does not roll back a script that fails. So everything that can fail comes
-- before the first write: values are built from data that another client may have
-- corrupted, and a key of the wrong type ends the script.
--
-- uses changes.lua: CHARGED, PENDING, changed, entries, journal, notice, text_of, texts, zadd, zrem
-- uses queue.lua: q, to_tell
-- uses shard.lua: ADJUSTMENTS_KEY, AT_SHOP_KEY, BINDINGS_KEY, CELLS_KEY, JOURNAL_KEY, LIMITS_KEY, LINE_KEY, META_KEY, ORDERS_KEY, QUEUE_KEY, RECORDS_KEY, RETURNS_KEY, TOMBSTONES_KEY, UNPAID_KEY, WAITLIST_KEY, bindings, call, cell_text, cells, concat, int, limits, records, shard
-- uses states.lua: unpaid
-- uses unpaid.lua: unpaid_text
-- uses waitlist.lua: waitlist

local writes = {} -- { command, place of the key, arguments }

local function to_write(command, place, list)
  if list[1] then writes[#writes + 1] = { command, place, list } end
end

-- fields_to_write(place, texts): fields that are texts; false: delete the field
local function fields_to_write(place, texts)
  local set, del = {}, {}
  for field, text in pairs(texts) do
    if text then
      set[#set + 1] = field
      set[#set + 1] = text
    else
      del[#del + 1] = field
    end
  end
  to_write('HSET', place, set)
  to_write('HDEL', place, del)
end

local function members_to_write(place, added, removed)
  local set, del = {}, {}
  for id in pairs(removed) do if not added[id] then del[#del + 1] = id end end
  for id, at in pairs(added) do
    set[#set + 1] = int(at)
    set[#set + 1] = id
  end
  to_write('ZREM', place, del)
  to_write('ZADD', place, set)
end

-- check_types fails where a key that was not read cannot be written: records of tombstones
-- that are over, and the sorted sets. Of the others operations read what they change, and
-- XADD, the first write, checks the journal.
local function check_types()
  local last
  for _, w in ipairs(writes) do
    local place = w[2]
    if place >= RECORDS_KEY and place <= TOMBSTONES_KEY and place ~= last then call(place == RECORDS_KEY and 'HLEN' or 'ZCARD', KEYS[place]) end
    last = place
  end
end

local function flush()
  for name in pairs(changed.cells) do
    local c = cells[name]
    changed.cells[name] = c and cell_text(c)
  end
  for field in pairs(changed.limits) do
    local l = limits[field]
    changed.limits[field] = l[CHARGED] > 0 and int(l[CHARGED]) .. ' ' .. int(l[PENDING])
  end
  for id in pairs(changed.records) do changed.records[id] = records[id] and text_of(id) end
  for field in pairs(changed.bindings) do changed.bindings[field] = bindings[field] end
  for field in pairs(changed.unpaid) do changed.unpaid[field] = unpaid_text(unpaid[field]) end
  changed.meta.seq, changed.meta.clock = int(shard.seq), int(shard.now)
  if shard.lead_changed then changed.meta.lead = string.format('%.0f', shard.lead) end

  fields_to_write(CELLS_KEY, changed.cells)
  fields_to_write(LIMITS_KEY, changed.limits)
  fields_to_write(RECORDS_KEY, changed.records)
  for i, name in ipairs({ 'deadlines', 'in_doubt', 'unbacked', 'tombstones' }) do members_to_write(RECORDS_KEY + i, zadd[name], zrem[name]) end
  fields_to_write(ADJUSTMENTS_KEY, changed.adjustments)
  fields_to_write(BINDINGS_KEY, changed.bindings)
  fields_to_write(RETURNS_KEY, changed.returns)
  fields_to_write(UNPAID_KEY, changed.unpaid)
  if q then
    to_tell()
    members_to_write(LINE_KEY, q.line, q.no_line)
    fields_to_write(ORDERS_KEY, q.orders)
    members_to_write(AT_SHOP_KEY, q.shop, q.no_shop)
    fields_to_write(QUEUE_KEY, q.fields)
  end
  if waitlist then fields_to_write(WAITLIST_KEY, waitlist.fields()) end
  fields_to_write(META_KEY, changed.meta)
  check_types()

  for _, e in ipairs(entries) do call('XADD', KEYS[JOURNAL_KEY], e[1] .. '-0', 'v', '1', 'time', e[2], 'movements', e[3]) end
  if journal[1] then
    call('XADD', KEYS[JOURNAL_KEY], int(shard.seq) .. '-0', 'v', '1', 'time', int(shard.now), 'movements', concat(journal, '\n'))
  end
  for _, w in ipairs(writes) do
    local command, key, list = w[1], KEYS[w[2]], w[3]
    for i = 1, #list, 1000 do call(command, key, unpack(list, i, math.min(i + 999, #list))) end -- Lua's stack is small
  end
  if notice then call('PUBLISH', ARGV[1], notice .. ' ' .. ARGV[2] .. ' ' .. int(shard.seq)) end
end
