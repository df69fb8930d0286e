-- perform.lua: do the acts of a sale that are due, in the order of their times, and note what has become of
-- each: all in one call, so that none is lost and none done twice, however many edges ask. An act that is
-- not possible is noted as failed, and not tried again.
--
-- An act that was planned in an earlier epoch of the sale fails: Redis comes from a backup, or the sale was
-- rebuilt, and what has become of the act since is not known. For the same reason nothing opens a sale of which
-- status.lua has noted that it is behind. After the end of the sale only closing it makes sense.
--
-- a[1]  version  of the sale that the caller knows
-- a[2]  unready  1: the sale lacks purchases of before it, and is not to be opened
--
-- Returns { 'ok', next, line, … }  when the next act is due, ms by Redis's own time, or 0; and those that
--                                  were due, as acts.lua keeps them
--         { 'version', version } { 'no_sale' }
--
-- uses acts.lua: read_acts, write_acts, write_done
-- uses asked.lua: sure_time
-- uses changes.lua: notice, operations, read_cell
-- uses shard.lua: ADJUSTMENTS_KEY, META_KEY, STOCK, call, concat, int, match, shard, time

local becomes = { open = 'open', resume = 'open', pause = 'paused', close = 'closed' }

-- hopeless returns why an act cannot be done now; nil: it may be tried
local function hopeless(act, unready)
  if act.epoch ~= shard.epoch then return 'restored' end
  if act.kind ~= 'close' and time >= shard.ends then return 'ended' end
  if becomes[act.kind] ~= 'open' then return end
  if call('HGET', KEYS[META_KEY], 'behind') then return 'behind' end
  if unready then return 'unready' end
  if act.kind == 'resume' and shard.status == 'draft' then return 'conflict draft' end
end

-- change_stock changes a cell by an adjustment of the act's own, which is made once also where a failover
-- has lost that the act is done
local function change_stock(act, cause)
  local c = read_cell(act.cell)
  if not c then return 'failed', 'unknown' end
  local sign, units = match(act.change, '^([-+=])(%d+)$')
  local id = 'act-' .. int(act.number) .. '-' .. int(act.at)
  local delta = tonumber(units)
  if sign == '-' then delta = -delta end
  if sign == '=' then delta = delta - c[STOCK] end
  if delta == 0 or call('HGET', KEYS[ADJUSTMENTS_KEY], id) then return 'done', 'stock ' .. int(c[STOCK]) end
  local r = operations.adjust({ id, act.cell, int(delta), cause })
  if r[1] == 'ok' then return 'done', 'stock ' .. int(r[2]) end
  return 'failed', r[1] .. ' ' .. (r[2] and int(r[2]) or '')
end

-- perform returns what has become of an act: done or failed, and more about it
local function perform(act, unready)
  local why = hopeless(act, unready)
  if why then return 'failed', why end
  local cause = act.by .. ' act ' .. int(act.number)
  if act.kind == 'stock' then return change_stock(act, cause) end
  if shard.status == becomes[act.kind] then return 'done', 'same' end
  local r = operations.status({ becomes[act.kind], cause, '', '' })
  if r[1] == 'ok' then return 'done', '' end
  return 'failed', r[1] .. ' ' .. r[2]
end

function operations.perform(a)
  if not shard.exists then return { 'no_sale' } end
  local coming, due = {}, {}
  for _, act in ipairs(read_acts('acts')) do
    if act.at <= sure_time then due[#due + 1] = act else coming[#coming + 1] = act end
  end
  if due[1] and shard.version ~= tonumber(a[1]) then return { 'version', shard.version } end
  local out, done, sale_changed = { 'ok', coming[1] and coming[1].at or 0 }, read_acts('acts_done'), false
  for _, act in ipairs(due) do
    local outcome, detail = perform(act, a[2] == '1')
    sale_changed = sale_changed or act.kind ~= 'stock'
    act.line = concat({ act.text .. int(time), outcome, detail, '' }, '\t')
    out[#out + 1] = act.line
    done[#done + 1] = act
  end
  if due[1] then
    write_acts(coming)
    write_done(done)
  end
  if sale_changed then notice = 'sale' end
  return out
end
