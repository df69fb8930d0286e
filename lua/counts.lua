-- counts.lua: note what one process has counted of a sale since it started, so that every edge can sum over
-- all of them. A process writes its counts whole, so that the same again changes nothing and a write that Redis
-- has lost is made good by the next. It stands alone: it moves no stock.
--
-- A process that has ended is folded: its counts go into the sum of the edges of its name, once another of that
-- name comes, and with it one that is not heard for DEAD. Where there are MOST fields, the processes and
-- then the names that were heard longest ago are folded too, these into one sum. A process that was folded and
-- lives hears which of its writes that was, and counts from there.
--
-- KEYS[1]  meta    hash  see shard.lua; nothing is noted of a sale that is not there, or that is moving
-- KEYS[2]  counts  hash  p|process → "heard version started ended ready per_minute edge name" LF counts
--                        n|name    → "heard processes process:version …" LF counts: those that were folded, and
--                                    the last GONE of them
--                        f         → the same of all names that were folded
--                        heard and started are ms by Redis's own time and by the edge's; ended and ready 1 or 0;
--                        counts are "name n …"
--
-- ARGV[1]  schema   the newest that the edge understands
-- ARGV[2]  process  the caller's
-- ARGV[3]  known    1: Redis has had a write of this process in this sale
-- ARGV[4]  version  of the counts, which only grows; an older one than Redis has changes nothing
-- ARGV[5]  about    "started ended ready per_minute edge name", as above
-- ARGV[6]  name     of the edge
-- ARGV[7]  counts   "name n …"
--
-- Returns { 'ok', epoch }       it is noted
--         { 'folded', version } nothing is: the process was folded with the counts of this version
--         { 'gone', epoch }     nothing is: Redis does not have the write that was known
--         { 'full' }            nothing is: there are MOST_LIVE processes that live
--         { 'no_sale' }

local MOST, MOST_LIVE, GONE = 64, 200, 16
-- ms; a live edge writes at least every 30 s
local DEAD = 60000

local schema, process, known, version = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])
local name, counts = ARGV[6], KEYS[2]
local meta = redis.call('HMGET', KEYS[1], 'schema', 'epoch')
if not meta[2] or (tonumber(meta[1]) or 1) > schema then return { 'no_sale' } end
local now = redis.call('TIME')
now = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)

local function int(n) return string.format('%.0f', n) end

-- parse_sum reads the value of a name, or of f
local function parse_sum(text)
  local heard, processes, gone, body = string.match(text or '', '^(%d+) (%d+)([^\n]*)\n(.*)$')
  local sum = { heard = tonumber(heard) or 0, processes = tonumber(processes) or 0, gone = gone or '', of = {} }
  for what, n in string.gmatch(body or '', '(%S+) (%d+)') do sum.of[what] = tonumber(n) end
  return sum
end

local function sum_text(sum)
  local words, gone = {}, {}
  for what, n in pairs(sum.of) do words[#words + 1] = what .. ' ' .. int(n) end
  table.sort(words)
  for one in string.gmatch(sum.gone, '%S+') do gone[#gone + 1] = one end
  local last = table.concat(gone, ' ', math.max(1, #gone - GONE + 1))
  return int(sum.heard) .. ' ' .. int(sum.processes) .. (last ~= '' and ' ' .. last or '') .. '\n' .. table.concat(words, ' ')
end

-- fold adds a value to another field's, and drops it. It returns how many fields there are
local function fold(from, part, into)
  local sum = parse_sum(redis.call('HGET', counts, into))
  sum.heard, sum.processes = math.max(sum.heard, part.heard), sum.processes + part.processes
  sum.gone = sum.gone .. ' ' .. part.gone
  for what, n in pairs(part.of) do sum.of[what] = (sum.of[what] or 0) + n end
  redis.call('HSET', counts, into, sum_text(sum))
  redis.call('HDEL', counts, from)
  return redis.call('HLEN', counts)
end

-- read_process reads the value of a process
local function read_process(id, text)
  local heard, its, ended, called, body = string.match(text, '^(%d+) (%d+) %d+ (%d) %d %d+ %S+ (%S+)\n(.*)$')
  if not heard then return { heard = 0, ended = true, processes = 1, gone = '', of = {}, name = '-' } end
  local p = parse_sum(heard .. ' 1 ' .. id .. ':' .. its .. '\n' .. body)
  p.ended, p.name = ended == '1' or p.heard + DEAD < now, called
  return p
end

local function by_heard(a, b) return a.heard < b.heard end

-- make_room folds what may be folded before another process comes; false: there is no room
local function make_room()
  local all, dead, names, n = redis.call('HGETALL', counts), {}, {}, redis.call('HLEN', counts)
  for i = 1, #all, 2 do
    local field, id = all[i], string.match(all[i], '^p|(.+)$')
    local part = id and read_process(id, all[i + 1])
    if part and part.ended then
      part.field = field
      dead[#dead + 1] = part
    end
  end
  table.sort(dead, by_heard)
  for _, part in ipairs(dead) do
    local into = 'n|' .. part.name
    if n >= MOST and redis.call('HEXISTS', counts, into) == 0 then into = 'f' end
    if part.name == name or n >= MOST then n = fold(part.field, part, into) end
  end
  if n < MOST then return true end
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'n|' then
      names[#names + 1] = parse_sum(redis.call('HGET', counts, all[i]))
      names[#names].field = all[i]
    end
  end
  table.sort(names, by_heard)
  for _, sum in ipairs(names) do
    if n >= MOST then n = fold(sum.field, sum, 'f') end
  end
  return n < MOST_LIVE
end

local field = 'p|' .. process
local own = redis.call('HGET', counts, field)
if own then
  if (tonumber(string.match(own, '^%d+ (%d+)')) or 0) > version then return { 'ok', tonumber(meta[2]) } end
else
  for _, into in ipairs({ 'n|' .. name, 'f' }) do
    local was = string.match(parse_sum(redis.call('HGET', counts, into)).gone .. ' ', ' ' .. process .. ':(%d+) ')
    if was then return { 'folded', tonumber(was) } end
  end
  if known then return { 'gone', tonumber(meta[2]) } end
  if not make_room() then return { 'full' } end
end
redis.call('HSET', counts, field, int(now) .. ' ' .. ARGV[4] .. ' ' .. ARGV[5] .. '\n' .. ARGV[7])
return { 'ok', tonumber(meta[2]) }
