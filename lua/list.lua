-- list.lua: add entries to a named list, or remove some; all of one call or none.
--
-- KEYS[1]  meta   hash    seq → number of the last change; tip → its name; count →
--                         entries; secret → print of the secret that hashes the entries;
--                         schema → the newest layout that an edge has written
-- KEYS[2]  log    stream  the last changes: seq-0 → prev, the change before it; tip;
--                         op, add or remove; keys, 16 bytes each
-- KEYS[3]  forms  hash    form of entries → how many of them there are
-- KEYS[4…] parts  set     the keys of the entries, only the parts that this call is about
--
-- ARGV[1]  channel  where the change is told
-- ARGV[2]  schema   the newest layout that the caller understands
-- ARGV[3]  secret   print of the caller's secret
-- ARGV[4]  op       add or remove
-- ARGV[5]  tip      a name for this change that no other one has
-- ARGV[6]  most     entries that the list may have
-- ARGV[7]  keep     changes that the log keeps
-- ARGV[8…]          for each entry: its part's place in KEYS, its form, its key
--
-- Returns { 'ok', changed, count }   changed: how many were not there, or were
--         { 'too_many', count }      the list would have more than it may
--         { 'foreign' }              the entries are hashed with another secret
--         { 'schema', newest }       a newer edge has changed the layout
--
-- A reader of the log knows from prev that it has missed nothing, and that the list was
-- not replaced by another of the same name.

-- the layout that this file writes: not the newest that the caller understands
local SCHEMA_OF_LISTS = 4

local meta = redis.call('HMGET', KEYS[1], 'seq', 'tip', 'count', 'secret', 'schema')
local seq, tip, count = tonumber(meta[1] or 0), meta[2] or '', tonumber(meta[3] or 0)
local op, wanted = ARGV[4], ARGV[4] == 'remove' and 1 or 0
if tonumber(meta[5] or 0) > tonumber(ARGV[2]) then return { 'schema', tonumber(meta[5]) } end
if meta[4] and meta[4] ~= ARGV[3] then return { 'foreign' } end

local changed, seen, parts, forms, keys = 0, {}, {}, {}, {}
for i = 8, #ARGV, 3 do
  local part, form, key = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if not seen[key] and redis.call('SISMEMBER', KEYS[tonumber(part)], key) == wanted then
    seen[key] = true
    changed = changed + 1
    keys[changed] = key
    parts[changed] = part
    forms[form] = (forms[form] or 0) + 1
  end
end
if changed == 0 then return { 'ok', 0, count } end
local sign = op == 'add' and 1 or -1
if op == 'add' and count + changed > tonumber(ARGV[6]) then return { 'too_many', count } end

local set, del = {}, {} -- of forms; read before the first write, so that what was spoiled fails here
for form, n in pairs(forms) do
  n = tonumber(redis.call('HGET', KEYS[3], form) or 0) + sign * n
  if n > 0 then set[#set + 1] = form; set[#set + 1] = string.format('%.0f', n) else del[#del + 1] = form end
end

-- the log first: it alone can fail now, when another client has deleted meta and left the log
redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[7], string.format('%.0f-0', seq + 1),
  'prev', tip, 'tip', ARGV[5], 'op', op, 'keys', table.concat(keys))
local change = op == 'add' and 'SADD' or 'SREM'
for i = 1, changed do redis.call(change, KEYS[tonumber(parts[i])], keys[i]) end
if set[1] then redis.call('HSET', KEYS[3], unpack(set)) end
if del[1] then redis.call('HDEL', KEYS[3], unpack(del)) end
redis.call('HSET', KEYS[1], 'seq', string.format('%.0f', seq + 1), 'tip', ARGV[5],
  'count', string.format('%.0f', count + sign * changed), 'secret', ARGV[3], 'schema', string.format('%.0f', math.max(tonumber(meta[5] or 0), SCHEMA_OF_LISTS)))
redis.call('PUBLISH', ARGV[1], ARGV[5])
return { 'ok', changed, count + sign * changed }
