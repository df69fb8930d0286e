-- place.lua: where an order stands.
--
-- a[1]  id  reservation id
--
-- Returns { 'ok', state, place, left, seconds, paused, deadline, sent, cause }: waiting, or the state of the
--         reservation; place, how many orders go before it, and itself; left, seconds as in line.lua;
--         paused, 1: it does not go now; sent, 0: it was not sent; 1: the shop has it; 2: the shop has answered, or its
--         room is free again; cause, why it left the line, where it was released and not sent
--         { 'not_found' } { 'restoring' }
--
-- uses changes.lua: CAUSE, DEADLINE, MODE, STATE, not_found, operations, read_record, reads, want_reservation
-- uses queue.lua: ASIDE, left_lately, load_queue_state, number_of, q
-- uses shard.lua: AT_SHOP_KEY, LINE_KEY, call, shard

reads.place = want_reservation

function operations.place(a)
  local r = read_record(a[1])
  if not r or r[STATE] == 'tombstone' then return not_found() end
  if r[STATE] ~= 'held' or r[MODE] ~= 'queued' then
    local sent = r[MODE] == 'queued' and 0 or r[STATE] == 'held' and call('ZSCORE', KEYS[AT_SHOP_KEY], a[1]) and 1 or 2
    local cause = sent == 0 and r[STATE] == 'released' and r[CAUSE] or ''
    return { 'ok', r[STATE], 0, 0, 0, 0, r[DEADLINE] - shard.lead, sent, cause }
  end
  load_queue_state()
  local rank = call('ZRANK', KEYS[LINE_KEY], a[1])
  local left, seconds = left_lately()
  local still = q.paused or q.not_before > shard.now or number_of(call('ZSCORE', KEYS[LINE_KEY], a[1]) or nil) > ASIDE / 2
  return { 'ok', 'waiting', rank and rank + 1 or 0, left, seconds, still and 1 or 0, r[DEADLINE] - shard.lead, 0, '' }
end
