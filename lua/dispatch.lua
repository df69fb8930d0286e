-- dispatch.lua: run the operations of one call in order, then write. It comes
-- last in every script; ARGV and the answer are described in shard.lua.

local out = { time, shard.seq }
local refusal
if shard.schema > tonumber(ARGV[3]) then
  refusal = { 'schema', shard.schema } -- a newer edge has changed the layout
elseif shard.restoring and ARGV[4] ~= 'rebuilt' then
  refusal = { 'restoring' } -- half of the shard is missing
end
if refusal then -- touch nothing
  local i = 4
  while ARGV[i] do
    out[#out + 1] = refusal
    i = i + 2 + tonumber(ARGV[i + 1])
  end
  return out
end
local names, arguments = {}, {}
local i = 4
while ARGV[i] do
  local n = tonumber(ARGV[i + 1])
  local a
  if n <= 250 then
    a = { unpack(ARGV, i + 2, i + 1 + n) }
  else -- Lua's stack is small
    a = {}
    for j = 1, n do a[j] = ARGV[i + 1 + j] end
  end
  local name = ARGV[i]
  names[#names + 1], arguments[#names + 1] = name, a
  if reads[name] then reads[name](a) end
  i = i + 2 + n
end
read_wanted(wanted_records, KEYS[4], records)
for id, r in pairs(records) do
  if r then -- what will end or go on: its units, its limits, what it binds
    r = read_record(id)
    for _, line in ipairs(pairs_of(r[LINES])) do want_cell(line[1]) end
    for _, charge in ipairs(pairs_of(r[CHARGES])) do want(wanted_limits, charge[1]) end
    if r[GUARD] ~= '' then want(wanted_bindings, r[GUARD]) end
    if r[REF] ~= '' then want(wanted_bindings, ref_field(r[REF])) end
  end
end
read_wanted(wanted_bindings, KEYS[11], bindings)
read_wanted(wanted_limits, KEYS[3], limits, parse_limit)
read_wanted(wanted_cells, KEYS[2], cells, parse_cell)
for k, name in ipairs(names) do out[k + 2] = operations[name](arguments[k]) end
if dirty then flush() end
out[2] = shard.seq
return out
