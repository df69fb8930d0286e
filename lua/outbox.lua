-- outbox.lua: take, keep or give up the right to send a shard's movements to the
-- outbox's receiver, so that one edge sends and the others do not.
--
-- a[1]  owner  the caller
-- a[2]  lease  ms for which the caller has the right, from now; 0: it gives it up
-- a[3]  epoch  of the shard whose movements the caller has read
-- a[4]  last   the last movement of the batch that the caller is about to send; 0: none
--
-- Returns { 'ok', epoch, sent, sending }: the last movement that the receiver has, and
--         the last one of the batch that is on its way to it. Where a caller began to
--         send a batch, it is that one, whatever is asked: the same batch again has
--         the same id;
--         { 'conflict', epoch, sent } another owner has the right; { 'no_sale' }
--
-- uses changes.lua: changed, dirty, operations
-- uses shard.lua: META_KEY, call, int, shard

function operations.outbox(a)
  if not shard.exists then return { 'no_sale' } end
  local owner, lease, epoch, last = a[1], tonumber(a[2]), tonumber(a[3]), tonumber(a[4])
  local kept = call('HMGET', KEYS[META_KEY], 'sender', 'sender_until', 'sent', 'sent_at', 'sending')
  local sender, ends = kept[1] or '', tonumber(kept[2] or '0')
  local sent, sending = tonumber(kept[3] or '0'), tonumber(kept[5] or '0')
  -- where the lead of the shard's clock has ended since, a right seems to be for longer than
  -- any is given
  local good = ends > shard.now and (lease == 0 or ends <= shard.now + lease)
  if sender ~= owner and sender ~= '' and good then return { 'conflict', shard.epoch, sent } end
  if lease == 0 then
    if sender == owner then changed.meta.sender_until, dirty = '0', true end
    return { 'ok', shard.epoch, sent, sending }
  end
  if sending <= sent then
    sending = sent
    if epoch == shard.epoch and last > sent then sending = last end
  end
  changed.meta.sender, changed.meta.sender_until = owner, int(shard.now + lease)
  changed.meta.sent, changed.meta.sending = int(sent), int(sending)
  -- it is well while nothing waits; one that has just been switched on begins well
  if not kept[4] or sent >= shard.seq then changed.meta.sent_at = int(shard.now) end
  dirty = true
  return { 'ok', shard.epoch, sent, sending }
end
