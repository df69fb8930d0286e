-- dispatch.lua: run the operations of one call in order, then write. It comes last in
-- every script that has several.
--
-- uses asked.lua: arguments, names, out
-- uses changes.lua: dirty, operations, reads
-- uses flush.lua: flush
-- uses shard.lua: META_KEY, call, shard
-- uses states.lua: read_ahead

for k, name in ipairs(names) do
  if reads[name] then reads[name](arguments[k]) end
end
read_ahead()
for k, name in ipairs(names) do out[k + 4] = operations[name](arguments[k]) end
if dirty then
  flush()
elseif shard.lead_changed then
  call('HSET', KEYS[META_KEY], 'lead', string.format('%.0f', shard.lead))
end
out[2], out[3] = shard.lead, shard.seq
return out
