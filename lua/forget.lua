-- forget.lua: drop the records of reservations that ended without an order so long ago that
-- nothing refers to them any more, see docs/reservations.md. Their units, limits and bindings
-- went when they ended. It writes no movement: the journal has their end.
--
-- a[1]  cursor    where to go on; 0: at the beginning
-- a[2]  most      about how many records to look at in this call
-- a[3]  ended     ms that a record is kept after its reservation was released before its deadline:
--                 by the shop's own word, because it was never sent, or by force
-- a[4]  overdue   ms that a record is kept where the deadline came first: the shop may yet confirm
-- a[5]  patience  ms; a ledger that was heard of since keeps what it does not have yet
--
-- Returns { 'ok', cursor, looked, dropped }; cursor 0: all have been looked at
--
-- What has gone is remembered by one number, forgotten in KEYS[1]: no token that expired up to
-- then makes a reservation again, see confirm.lua.
--
-- uses asked.lua: sure_time
-- uses bindings.lua: stays_found, unbind
-- uses changes.lua: CAUSE, CHANGED, DEADLINE, EXP, REF, STATE, changed, operations, parse_record, write_record
-- uses shard.lua: JOURNAL_KEY, META_KEY, RECORDS_KEY, call, find, int, records, shard

-- unknown_since is when the first movement that a ledger does not have yet was made, by the
-- shard's clock; nil: there is none, or no ledger
local function unknown_since(patience)
  local meta = call('HMGET', KEYS[META_KEY], 'acked', 'acked_at')
  if not meta[2] or tonumber(meta[2]) + patience <= shard.now then return nil end
  local entry = call('XRANGE', KEYS[JOURNAL_KEY], int(tonumber(meta[1] or '0') + 1) .. '-0', '+', 'COUNT', 1)[1]
  return entry and tonumber(entry[2][4])
end

local function is_over(r, now, ended, overdue, unknown)
  local age = r[CHANGED] < r[DEADLINE] and ended or overdue
  return math.max(r[CHANGED], r[DEADLINE], r[EXP]) + age <= now and (not unknown or r[CHANGED] < unknown)
end

function operations.forget(a)
  -- what is merged may be known here only by its end
  if sure_time == 0 or shard.merging then return { 'ok', a[1], 0, 0 } end
  local page = call('HSCAN', KEYS[RECORDS_KEY], a[1], 'COUNT', a[2])
  local now, ended, overdue = math.min(shard.now, sure_time), tonumber(a[3]), tonumber(a[4])
  local unknown = unknown_since(tonumber(a[5]))
  local dropped, last = 0, 0
  for i = 1, #page[2], 2 do
    local id, text = page[2][i], page[2][i + 1]
    if records[id] == nil and (find(text, 'released\t', 1, true) == 1 or find(text, 'expired\t', 1, true) == 1) then
      local r = parse_record(text)
      if is_over(r, now, ended, overdue, unknown) then
        write_record(id, false)
        if r[REF] ~= '' and stays_found(r[STATE], r[CAUSE]) then unbind(id, 'x|' .. r[REF]) end
        dropped, last = dropped + 1, math.max(last, r[EXP])
      end
    end
  end
  if dropped > 0 then
    changed.meta.forgotten = int(math.max(last, tonumber(call('HGET', KEYS[META_KEY], 'forgotten') or '0')))
  end
  return { 'ok', page[1], #page[2] / 2, dropped }
end
