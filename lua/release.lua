-- release.lua: the order will not come; the units go back on sale. Those of an expired
-- reservation are there already: the release only keeps the shop from confirming it. Of a hold that
-- took the place of another one, what the other token names stays held as long as that is good,
-- unless an operator uses force: under the id with a + behind it.
--
-- a[1]  id         reservation id
-- a[2]  word       whose word it is: shop | unsent (the caller alone could forward it, and did not) |
--                  unheard (the caller never heard that it waits: another edge may have sent it) |
--                  operator | probe | force (the operator's and a probe's word count only after the
--                  deadline, when the token has expired: until then the shop may still sell)
-- a[3]  not_after  ms by Redis's own time; an unknown id must not be reserved until then
--                  (a reserve of it may still be under way); 0: leave no tombstone
-- a[4]  cause      why
--
-- Returns { 'ok', state } { 'too_soon', left } { 'not_found' }
--         { 'conflict', state }  also of an offer, which only an operator releases, see waitlist.lua
--         { 'restoring' }, see not_found
--
-- uses changes.lua: CAUSE, MODE, STATE, complete, operations, plain, read_record, reads, want_reservation, write_record
-- uses queue.lua: load_queue_state, read_order
-- uses shard.lua: shard
-- uses states.lua: change_state, earlier_of, give_back, hold_again, index, margin_of, stands_as, swapped, too_soon

-- ms beyond not_after: more than any clock step
local TOMBSTONE_FOR = 3600000

-- was_sent reports whether the order of a held hold may have been sent after it waited
local function was_sent(id, r)
  if r[MODE] == 'queued' then return false end
  if r[CAUSE] == 'sent' then return true end -- by send.lua; a failover or rebuild may have lost the rest
  if not shard.queue then return false end
  load_queue_state()
  local o = read_order(id)
  return o and o.sent
end

reads.release = want_reservation

function operations.release(a)
  local id, word, not_after, cause = a[1], a[2], tonumber(a[3]), a[4]
  local r = read_record(id)
  if not r then
    if shard.merging then return { 'restoring' } end
    if not_after == 0 or not shard.exists then return { 'not_found' } end
    local until_when = math.max(not_after, shard.time) + TOMBSTONE_FOR
    write_record(id, complete({ 'tombstone', until_when, 0, shard.now, shard.now, '', '', '', '', plain(cause), shard.version }))
    index(id, 'tombstone', until_when)
    return { 'ok', 'tombstone' }
  end
  local state = r[STATE]
  if state == 'confirmed' then return { 'conflict', state } end
  if state == 'released' or state == 'tombstone' then return { 'ok', state } end
  if state == 'held' and r[MODE] == 'offer' and word ~= 'operator' and word ~= 'force' then return { 'conflict', stands_as(r) } end
  if word == 'unheard' and (state ~= 'held' or was_sent(id, r)) then return { 'conflict', state } end
  if state ~= 'expired' then -- else the deadline has passed, and the limits have theirs back
    local left = (word == 'operator' or word == 'probe') and too_soon(r) or 0
    if left > 0 then return { 'too_soon', left } end
    if state ~= 'unbacked' then give_back(r, true) end
  end
  local earlier, earlier_id
  local margin = state == 'held' and margin_of(r) or nil -- a hold in doubt does not tell
  if word ~= 'force' and (state == 'held' or state == 'in_doubt') then earlier, earlier_id = earlier_of(r) end
  change_state(id, r, 'released', cause)
  if earlier then
    local rest = read_record(earlier_id .. '+') -- what this one lacked of it
    if rest and rest[STATE] == 'held' then
      give_back(rest, true)
      change_state(earlier_id .. '+', rest, 'released', swapped)
    end
    hold_again(id .. '+', earlier, margin)
  end
  return { 'ok', 'released' }
end
