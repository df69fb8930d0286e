-- silent.lua: edges that are not heard any more and were not stopped, so that operators learn of it also
-- when no fence would wait for them. fence.lua calls it.
--
-- In meta:
--   came    "ms edge …": edges that were heard, and when they came by the shard's clock; 0: it is stopped, and
--           a fence waits for it all the same
--   silent  "heard noted edge\n…": such edges, until the sale is over: when each was last heard and when that
--           was noted, by Redis's own time. The last MOST_SILENT that were noted
--
-- An edge that comes takes over from a silent one of its own place, so that a restart after a crash leaves none.
-- Its place is its machine. The pods of a Kubernetes Deployment have one place: the next one has another name.
--
-- uses changes.lua: changed, split
-- uses shard.lua: concat, int, match, shard, time

local MOST_SILENT = 20
-- ms; so long after it was noted an edge counts as silent. Edges are heard of each sale every 20 s, but not of one that is
-- over: when its end is moved, those that come last are silent until then.
local HEARD_BY_THEN = 60000

-- place_of returns where an edge runs
local function place_of(edge)
  local machine = match(edge, '^(.+)%-[A-Z2-7]+$') or edge
  local deployment, set, pod = match(machine, '^(.+)%-([bcdfghjklmnpqrstvwxz2456789]+)%-([bcdfghjklmnpqrstvwxz2456789]+)$')
  return deployment and #set >= 6 and #pod == 5 and deployment or machine
end

local function read_came(text, last)
  local came = {}
  for at, name in string.gmatch(text, '(%d+) (%S+)') do
    if last[name] then came[name] = tonumber(at) end
  end
  return came
end

local function came_text(came)
  local words = {}
  for name, at in pairs(came) do words[#words + 1] = int(at) .. ' ' .. name end
  table.sort(words)
  return concat(words, ' ')
end

local function note_text(field, text, before)
  if text ~= before then changed.meta[field] = text ~= '' and text end
end

-- take_over_from drops from lines the first silent edge of the place of one that comes. It reports whether there was one.
local function take_over_from(lines, edge)
  for i, line in ipairs(lines) do
    if place_of(match(line, '%S+$')) == place_of(edge) then return table.remove(lines, i) end
  end
end

-- successor returns an edge that came to the place of another one after that was last heard
local function successor(came, edge, heard)
  for name, at in pairs(came) do
    if name ~= edge and at > heard and place_of(name) == place_of(edge) then return name end
  end
end

-- note_silent notes who comes, who stops and who is silent. last: when each edge was last heard, by the shard's
-- clock; silent: names of those that are to be dropped; does: as in fence.lua. It returns "heard edge\n…" of
-- those that count as silent.
local function note_silent(came_before, silent_before, last, silent, edge, does)
  local came, lines, known = read_came(came_before, last), {}, false
  for _, line in ipairs(split(silent_before, '[^\n]+')) do
    if match(line, '%S+$') == edge then known = true else lines[#lines + 1] = line end
  end
  if does == 'leave' or does == 'stop' then
    came[edge] = does == 'stop' and last[edge] and 0 or nil
  elseif does ~= 'forget' and not last[edge] and not known and not take_over_from(lines, edge) then
    came[edge] = shard.now
  end
  table.sort(silent, function(a, b) return last[a] < last[b] end)
  for _, name in ipairs(silent) do
    local next_one = came[name] ~= 0 and successor(came, name, last[name])
    if next_one then
      came[next_one] = nil -- it takes over from one
    elseif came[name] ~= 0 then
      lines[#lines + 1] = int(last[name] - shard.lead) .. ' ' .. int(time) .. ' ' .. name
    end
    came[name] = nil
  end
  if shard.status == 'closed' or time >= shard.ends then lines = {} end
  local text, counted = concat(lines, '\n', math.max(1, #lines - MOST_SILENT + 1)), {}
  note_text('came', came_text(came), came_before)
  note_text('silent', text, silent_before)
  for heard, noted, name in string.gmatch(text, '(%d+) (%d+) ([^\n]+)') do
    if tonumber(noted) + HEARD_BY_THEN <= time then counted[#counted + 1] = heard .. ' ' .. name end
  end
  return concat(counted, '\n')
end
