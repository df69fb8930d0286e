-- enter.lua: a person enters the waiting list of a cell. One person has one entry in a sale: who enters again has
-- the entry that is there.
--
-- a[1]  cell        sku or sku@region
-- a[2]  quantity    of units
-- a[3]  most        entries that a sale may have; told: the person was promised an entry before a fence, or had one in
--                   the previous life of the sale, and gets one whatever the sale is like now
-- a[4]  buyer       hash of the buyer
-- a[5]  identities  " kind=hash …" of the others that limits name, or ''
-- a[6]  number      of the entry, if it is free: in the previous life it had this one; absent: the next one
-- a[7]  since       ms by the shard's clock, with a[6]
--
-- Returns { 'ok', number, state, cell, quantity, since, new }
--                               state: waits | offered; new: 1, or 0 for the entry that was there
--         { 'two' }             the identities belong to two entries
--         { 'available', units }  units are free, and can be ordered
--         { 'full' }            the list has as many entries as it may have
--         { 'no_sale' } { 'unknown' } { 'not_started', starts, now } { 'paused' } { 'ended' } { 'closed' }
--
-- uses changes.lua: operations, read_cell, write_journal
-- uses shard.lua: AVAILABLE, closed_answer, int, shard
-- uses waitlist.lua: waitlist

local function told(e, new) return { 'ok', e.number, e.state == 'o' and 'offered' or 'waits', e.cell, e.quantity, e.since - shard.lead, new } end

function operations.enter(a)
  local name, quantity, buyer, identities = a[1], tonumber(a[2]), a[4], a[5]
  if not shard.exists then return { 'no_sale' } end
  local numbers = waitlist.numbers(buyer, identities)
  if numbers[2] then return { 'two' } end
  local e = numbers[1] and waitlist.entry(numbers[1])
  if e then return told(e, 0) end
  local c, promised = read_cell(name), a[3] == 'told'
  if not promised then
    local refusal = closed_answer()
    if refusal then return refusal end
  end
  if not c then return { 'unknown' } end
  if not promised then
    if c[AVAILABLE] > 0 and waitlist.counts(name) == 0 then return { 'available', c[AVAILABLE] } end
    if waitlist.number_in('live') >= tonumber(a[3]) then return { 'full' } end
  end
  local number, since = tonumber(a[6]), tonumber(a[7])
  if not number or waitlist.entry(number) then number, since = waitlist.number_in('last') + 1, shard.now end
  if waitlist.entry(number) then number = math.max(number, shard.seq) + 1 end -- another client has damaged the last one
  e = { number = number, state = 'w', cell = name, quantity = quantity, since = since, buyer = buyer, identities = identities }
  waitlist.put(e)
  write_journal('entered', int(e.number), '', name .. ' ' .. int(quantity), buyer, identities, '')
  return told(e, 1)
end
