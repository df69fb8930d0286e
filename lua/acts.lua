-- acts.lua: what is scheduled of a sale, and what has become of it. It comes before the operations that
-- read or change that; each is the only operation of its call.
--
-- Fields of KEYS[1], the meta hash:
--    act        the last number that an act was given
--    next_act   ms by Redis's own time: when the first of acts is due; missing: none is to come
--    acts       the acts that are to come, by time, a line for each:
--               "number at act cell change epoch by planned", each followed by a tab; times are ms; change
--               is of the stock of the cell: +n, -n or =n; epoch is the sale's when it was planned, see
--               perform.lua
--    acts_done  the last ones that are done or failed, the newest last: "done outcome detail" behind the rest
--
-- uses changes.lua: changed, dirty
-- uses shard.lua: META_KEY, call, concat, int, match

local MOST_ACTS, KEPT_ACTS = 100, 50
local act_form = '^((%d+)\t(%d+)\t(%l+)\t(%S*)\t([-+=]?%d*)\t(%d+)\t([^\t\n]*)\t%d+\t)'

-- read_acts(field): the acts of a field, as they are kept and by their parts
local function read_acts(field)
  local all = {}
  for line in string.gmatch(call('HGET', KEYS[META_KEY], field) or '', '[^\n]+') do
    local act = { line = line }
    act.text, act.number, act.at, act.kind, act.cell, act.change, act.epoch, act.by = match(line, act_form)
    if act.text then
      act.number, act.at, act.epoch = tonumber(act.number), tonumber(act.at), tonumber(act.epoch)
      all[#all + 1] = act
    end
  end
  return all
end

local function write_lines(field, all)
  local lines = {}
  for i, act in ipairs(all) do lines[i] = act.line end
  changed.meta[field] = #lines > 0 and concat(lines, '\n')
  dirty = true
end

-- write_acts keeps the acts that are to come
local function write_acts(all)
  table.sort(all, function(a, b) return a.at < b.at or a.at == b.at and a.number < b.number end)
  write_lines('acts', all)
  changed.meta.next_act = all[1] and int(all[1].at)
end

-- write_done keeps the last acts. One that failed goes after those that did not.
local function write_done(all)
  while #all > KEPT_ACTS do
    local first = 1
    for i, act in ipairs(all) do
      if not string.find(act.line, '\tfailed\t', 1, true) then
        first = i
        break
      end
    end
    table.remove(all, first)
  end
  write_lines('acts_done', all)
end

-- with_number returns where an act is in a list; nil: it is not there
local function with_number(all, number)
  for i, act in ipairs(all) do if act.number == number then return i end end
end
