-- dispatch.lua: run the operations of one call in order, then write. It comes last in
-- every script that has several.

for k, name in ipairs(names) do
  if reads[name] then reads[name](arguments[k]) end
end
read_wanted(wanted_records, KEYS[4], records)
for id, r in pairs(records) do
  if r then -- what will end or go on: its units, its limits, and what it may free
    r = read_record(id)
    for _, line in ipairs(pairs_of(r[LINES])) do want_cell(line[1]) end
    for _, charge in ipairs(pairs_of(r[CHARGES])) do want(wanted_limits, charge[1]) end
    if r[GUARD] ~= '' and (asked.release or not is_key(r[GUARD])) then want(wanted_bindings, r[GUARD]) end
    if r[REF] ~= '' and asked.release then want(wanted_bindings, ref_field(r[REF])) end
  end
end
read_wanted(wanted_bindings, KEYS[11], bindings)
read_wanted(wanted_limits, KEYS[3], limits, parse_limit)
read_wanted(wanted_cells, KEYS[2], cells, parse_cell)
for k, name in ipairs(names) do out[k + 2] = operations[name](arguments[k]) end
if dirty then flush() end
out[2] = shard.seq
return out
