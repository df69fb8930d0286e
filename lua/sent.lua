-- sent.lua: the outbox's receiver has the journal up to an entry. It does not matter
-- which edge has the right to send by now: the receiver has accepted the entry.
--
-- a[1]  epoch  of the shard whose movements were sent
-- a[2]  seq    the entry; one that is older than the last one changes nothing but the time
--
-- Returns { 'ok', seq } the newest one; { 'no_sale' } another epoch, or nothing is known;
--         { 'conflict', seq } the shard has not come that far: it has lost entries
--
-- uses changes.lua: changed, dirty, operations
-- uses shard.lua: META_KEY, call, int, shard

function operations.sent(a)
  if not shard.exists or shard.epoch ~= tonumber(a[1]) then return { 'no_sale' } end
  local seq = tonumber(a[2])
  if seq > shard.seq then return { 'conflict', shard.seq } end
  local sent = math.max(seq, tonumber(call('HGET', KEYS[META_KEY], 'sent') or '0'))
  changed.meta.sent, changed.meta.sent_at = int(sent), int(shard.now)
  dirty = true
  return { 'ok', sent }
end
