-- shard.lua: what every script of a shard begins with. In that of reservations only
-- reserve.lua follows. In the others come asked.lua, changes.lua, bindings.lua and states.lua;
-- the operations follow as functions in `operations`; dispatch.lua runs them one after the
-- other, and flush.lua writes last.
--
-- KEYS[1]  meta         hash    epoch, seq, version, status, starts, ends, clock, lead, schema, doc,
--                               acked and acked_at, see acknowledge.lua; sender, sender_until, sent,
--                               sent_at and sending, see outbox.lua and sent.lua; mirror, mirror_until and mirror_state, see mirror.lua; restoring and
--                               merging, see renew.lua; forgotten, see forget.lua; deleted, see apply.lua; repaired, the last entry of a reconciliation, see repair.lua;
--                               term, terms, replid, run_id, beat, fence, fenced, absent, keeps, asks and unsent, see fence.lua; came and silent, see silent.lua; lost, see confirm.lua; queue, 1: orders have waited, see queue.lua; waitlist, 1: people have waited, see waitlist.lua;
--                               behind and continues, see status.lua; thaws, the schema that a frozen sale gets again, see freeze.lua;
--                               act, acts, acts_done and next_act, see acts.lua
-- KEYS[2]  cells        hash    cell → "stock available held in_doubt confirmed" (units)
-- KEYS[3]  limits       hash    limit|window|identity → "charged pending" (units or orders;
--                               pending is the part of charged that holds have not resolved)
-- KEYS[4]  records      hash    reservation id → record, see below
-- KEYS[5]  deadlines    zset    reservation id of a held hold, by deadline (ms)
-- KEYS[6]  in_doubt     zset    reservation id in doubt, by since when (ms)
-- KEYS[7]  unbacked     zset    reservation id that the shop sold without stock, by since when (ms)
-- KEYS[8]  tombstones   zset    reservation id that must not be reserved any more, by until when (ms)
-- KEYS[9]  adjustments  hash    adjustment id → "cell delta stock"
-- KEYS[10] journal      stream  one entry per call, see docs/books.md#the-journal; its id is seq-0 of its last movement
-- KEYS[11] bindings     hash    what belongs to one reservation → its id, see bindings.lua
-- KEYS[12] returns      hash    reservation|return id → "restock cell quantity …", what came back, a tab,
--                               what was answered
-- KEYS[13] unpaid       hash    kind|identity → "held t1 t2 …", see unpaid.lua
-- KEYS[14] line         zset    reservation id of an order that waits for the shop → number by which it
--                               came; below 0: before the others; above 2e15: no edge can send it
-- KEYS[15] orders       hash    reservation id → order, and p|id → what is to be sent, packed, see queue.lua
-- KEYS[16] at_shop      zset    reservation id of an order whose turn it is, or that the shop has → ms by
--                               the shard's clock, until when the turn lasts
-- KEYS[17] queue        hash    next, µs by the shard's clock, when the next turn may be given; went, when the
--                               next order that has its turn may go to the shop;
--                               until, ms, before which none may; bytes of all packed orders; paused;
--                               s0 … s9: "second n", how many left in a second; e|edge: ms, until when an
--                               edge counts as alive; t|edge: "id try …", whose turn it has not been told; g|edge:
--                               prints of its gates; a|print and a|edge: orders of that gate, or of that edge, may
--                               be those that no edge can send;
--                               fence: the last fence that was looked at
-- KEYS[18] waitlist     hash    people who wait for units, see waitlist.lua
--
-- ARGV[1]  channel      where notices are published: "sale|stock <sale> <seq>"
-- ARGV[2]  sale         the sale's id
-- ARGV[3]  schema       the newest key schema that the caller understands
-- ARGV[4]  latest       ms; the shard's clock is not later than this by what the caller has heard and
--                       its own monotonic clock; '': it has not heard enough
-- ARGV[5]  latest_time  the same of Redis's own time
-- ARGV[6]  term         the newest term that the caller knows, see fence.lua; '': none
-- ARGV[7]  known        the newest number of the journal that the caller knows in it
-- ARGV[8…] operations   for each: name, number of arguments, arguments
--
-- Returns { time, lead, seq, term, reply, … }: Redis's own time in ms, the lead of the shard's
-- clock over it, the newest number in the journal after this call, the term that the shard is
-- in ('': it has no fence), then one reply per operation: { code, … }, codes in codes.go.
-- Times in replies are by Redis's own time.
--
-- There are two clocks, see docs/failover.md#clocks:
--    time   Redis's own. Sales start and end by it, limits have their windows, tokens expire, and
--           a record has its exp and created. It may step.
--    now    the shard's: deadlines and all other times in these keys are by it. It never goes back
--           and goes on at the rate of real time: it is time + lead. Where time is found to have
--           stepped back, the lead grows, and is stored even by a call that refuses. Where a
--           caller knows that time has stepped forward, expire.lua takes the step off the lead.
--
-- A record is its fields, each followed by a tab; times are ms:
--    1 state     2 deadline  3 exp      4 created   5 changed (since when it is in its state)
--    6 mode: response | backend | queued, see queue.lua | offer, see waitlist.lua
--    7 buyer     8 lines    "cell quantity …"
--    9 charges   "limit-field amount …"            10 cause    11 version (of the sale)
--   12 guard     the binding of its idempotency key or of its buyer and lines, or ''
--   13 print     hash of what was asked under the key; without a key: + and the id of the hold whose
--                place it took, see swap.lua, or ''
--   14 key_ttl   ms that the key stays bound once it is confirmed, at least until the sale ends
--   15 ref       the shop's own name of the order, or ''
--   16 gate      the gate that made it, or ''
--   17 returned  "cell quantity …" in sum, or ''
--   18 probes    "tries next_at absent counted": how often the shop was asked, when it may be
--                asked again, how often it did not have the order, and up to which try that
--                is counted or must not count; or ''
--   19 unpaid    "field …" of unpaid that count it while it is not paid, or ''
--
-- Nothing is written before the last operation has been checked: operations work
-- on what `shard` has read and note what is to be written; flush.lua writes, the
-- journal first, because Redis refuses a repeated sequence number there.

-- the schema that a record needs, by what it is of: it is raised to that, and not to the newest that the caller understands
local SCHEMA_OF_UNPAID, SCHEMA_OF_TERMS, SCHEMA_OF_QUEUES, SCHEMA_OF_WAITLISTS, SCHEMA_OF_SALES = 2, 3, 4, 5, 4

local META_KEY, CELLS_KEY, LIMITS_KEY, RECORDS_KEY, DEADLINES_KEY, IN_DOUBT_KEY, UNBACKED_KEY, TOMBSTONES_KEY = 1, 2, 3, 4, 5, 6, 7, 8
local ADJUSTMENTS_KEY, JOURNAL_KEY, BINDINGS_KEY, RETURNS_KEY, UNPAID_KEY = 9, 10, 11, 12, 13
local LINE_KEY, ORDERS_KEY, AT_SHOP_KEY, QUEUE_KEY, WAITLIST_KEY = 14, 15, 16, 17, 18

local STOCK, AVAILABLE, HELD, IN_DOUBT, CONFIRMED = 1, 2, 3, 4, 5

local call = redis.call

local find, match, concat = string.find, string.match, table.concat

-- 1e14 and more would be written in exponent form. Most numbers of a call are its times
-- and small ones, again and again. The embedded server makes a table's array as long as its
-- greatest index below 6.7e7, so no index is a number itself.
local BEYOND_ARRAYS = 1000000000000000
local ints = {}
local function int(n)
  local text = ints[n + BEYOND_ARRAYS]
  if text then return text end
  if n >= 1e14 or n <= -1e14 then return string.format('%.0f', n) end
  text = tostring(n)
  ints[n + BEYOND_ARRAYS] = text
  return text
end

local time = call('TIME')
time = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- how far the shard's clock may be ahead of what a caller expects, in ms: margins are no less
local TOLERANCE = 1000

local stored = call('HMGET', KEYS[META_KEY], 'epoch', 'seq', 'version', 'status', 'starts', 'ends', 'clock', 'lead', 'schema', 'restoring', 'merging',
  'term', 'replid', 'fence', 'queue', 'waitlist')
local lead, clock = tonumber(stored[8] or '0'), tonumber(stored[7] or '0')
local shard = {
  exists = stored[1] and true or false,
  epoch = tonumber(stored[1] or '0'),
  seq = tonumber(stored[2] or '0'),
  version = tonumber(stored[3] or '0'),
  status = stored[4] or 'draft',
  starts = tonumber(stored[5] or '0'),
  ends = tonumber(stored[6] or '0'),
  schema = tonumber(stored[9] or '0'),
  restoring = stored[10] and tonumber(stored[10]),
  -- merging: something of the previous life of the shard is still to be merged: a
  -- reservation that is not here may be there
  merging = stored[11] and true or false,
  -- term: of the history of this server, see fence.lua; false: the shard has no fence
  term = stored[12],
  -- queue: orders have waited for the shop
  queue = stored[15] and true or false,
  -- waitlist: people have waited for units
  waitlist = stored[16] and true or false,
  time = time,
  lead = lead,
  -- lead_changed: it must be stored, also by a call that writes nothing else
  lead_changed = false,
}
if time + lead < clock then shard.lead, shard.lead_changed = clock - time, shard.exists end
shard.now = time + shard.lead

-- knows_more reports whether a caller that has come to a number in a term knows movements that
-- this shard does not have
local function knows_more(term, known)
  if term == shard.term then return known > shard.seq end
  local epoch, _, _, first = match(term, '^(%d+):(%d+):(%x+):(%d+)$')
  if not epoch then return false end
  if tonumber(epoch) ~= shard.epoch then return tonumber(epoch) > shard.epoch end
  local terms, after = call('HGET', KEYS[META_KEY], 'terms') or '', false
  for name in string.gmatch(terms, '%S+') do
    if after then return known >= tonumber(match(name, '%d+$')) end -- where the next one begins
    after = name == term
  end
  if after then return known > shard.seq end
  return known >= tonumber(first) or known > shard.seq
end

-- fenced reports whether this call must change nothing, see fence.lua: the server has another
-- history than the one that the shard was sold from, or a shorter one than the caller's.
-- master_replid2, which may be the same, must not be found.
local function fenced(term, known)
  if not shard.term then -- a caller that knows one of this epoch knows of another server
    return tonumber(match(term, '^%d+') or '0') == shard.epoch and shard.exists
  end
  if not find(call('INFO', 'replication'), 'master_replid:' .. stored[13], 1, true) then return true end
  if stored[14] then return 'pass:' .. stored[14] ~= term end
  return term ~= '' and knows_more(term, tonumber(known))
end

-- closed_answer is the answer to all attempts while the sale does not sell; nil: it sells
local function closed_answer()
  if shard.status == 'closed' then return { 'closed' } end
  if time >= shard.ends then return { 'ended' } end
  if shard.status == 'draft' then return { 'not_started', 0, time } end
  if time < shard.starts then return { 'not_started', shard.starts, time } end
  if shard.status == 'paused' then return { 'paused' } end
end

-- what was read, and what has become of it in this call
local cells, limits, records, bindings = {}, {}, {}, {}

local function parse_cell(text)
  if not text then return false end
  local stock, available, held, in_doubt, confirmed = match(text, '^(%-?%d+) (%-?%d+) (%-?%d+) (%-?%d+) (%-?%d+)')
  return { tonumber(stock), tonumber(available), tonumber(held), tonumber(in_doubt), tonumber(confirmed) }
end

-- cell_text is a cell as it is kept
local function cell_text(c)
  return int(c[STOCK]) .. ' ' .. int(c[AVAILABLE]) .. ' ' .. int(c[HELD]) .. ' ' .. int(c[IN_DOUBT]) .. ' ' .. int(c[CONFIRMED])
end
