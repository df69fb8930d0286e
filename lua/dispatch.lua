-- dispatch.lua: run the operations of one call in order, then write. It comes last in
-- every script that has several.

for k, name in ipairs(names) do
  if reads[name] then reads[name](arguments[k]) end
end
read_ahead()
for k, name in ipairs(names) do out[k + 4] = operations[name](arguments[k]) end
if dirty then
  flush()
elseif shard.lead_changed then
  call('HSET', KEYS[1], 'lead', string.format('%.0f', shard.lead))
end
out[2], out[3] = shard.lead, shard.seq
return out
