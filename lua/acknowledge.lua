-- acknowledge.lua: a ledger has the journal up to an entry.
--
-- a[1]  epoch  of the shard that the ledger follows
-- a[2]  seq    the entry; one that is older than the last one changes nothing but the time
--
-- acked never goes back, also where the ledger does because its file was put back from a backup: what is
-- before acked may be trimmed, so that a lower number would promise entries that are gone. And an edge sees by
-- it that its ledger has less than some ledger had. Such an edge trims by what its ledger has itself.
--
-- Returns { 'ok', seq } the newest one; { 'no_sale' } another epoch, or nothing is known;
--         { 'conflict', seq } the shard has not come that far: it has lost entries
--
-- uses changes.lua: changed, dirty, operations
-- uses shard.lua: META_KEY, call, int, shard

function operations.acknowledge(a)
  if not shard.exists or shard.epoch ~= tonumber(a[1]) then return { 'no_sale' } end
  local seq = tonumber(a[2])
  if seq > shard.seq then return { 'conflict', shard.seq } end
  local acked = math.max(seq, tonumber(call('HGET', KEYS[META_KEY], 'acked') or '0'))
  changed.meta.acked, changed.meta.acked_at = int(acked), int(shard.now)
  dirty = true
  return { 'ok', acked }
end
