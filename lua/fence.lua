-- fence.lua: an edge says that it lives, and what it knows of a sale. On a server that has
-- another history than the one the sale was sold from, a replica that was promoted or a
-- server that was started again, the shard is fenced: every other script changes nothing,
-- until the edges have said what they know, and what this server lacks of it is applied again.
-- See docs/failover.md.
--
-- A term is a time in which a shard has one history: "epoch:number:replid:first". replid is
-- the server's master_replid, which changes with a promotion and with a start; first is the
-- number of the first movement in the term. In meta:
--   term    the current one; absent: the shard has no fence
--   terms   the last MOST_TERMS of them, the current one last
--   replid  master_replid of the server in this term
--   run_id  of the server that began it
--   beat    ms by Redis's own time; when an edge was last heard
--   fence   "replid begun base stage" while the shard is fenced. begun: ms by Redis's own time;
--           base: the newest number that this server had then.
--           stage: collect, what edges know; tell, edges tell again what no journal entry told
--   fenced  "number begun ended replayed missing absent base": the last fence: the term that came
--           of it, ms, movements that were applied again, numbers that are lost, edges that did
--           not come, or have stopped before they had said and told all
--   absent  "ms edge\n…" of these edges: when each was last heard, by Redis's own time
--   keeps   "edge how …": edges that send an order that waits only once the record of that, see send.lua,
--           outlives this server in one way: disk, in its append-only file; replicas, in all of its replicas;
--           both
--   asks    "edge …": edges whose ledger has not said in this fence how far it is
--   unsent  "number begun" of the last fence, as in fenced, where the edges that did not come have sent no order
--           that waits here; see below
--   came, silent  edges that are not heard any more, see silent.lua
--
-- What waits here was certainly not sent by an edge that did not come if
--   - it keeps what it sends in the way in which this server came to be: by disk where it has started from
--     its append-only file, by replicas where it was promoted. Its send was acknowledged before the order went, so it is here, and
--     the order does not wait.
--   - and this server ends no earlier than it did: no edge that came, and no ledger, knows a number after
--     base, and no number is missing. A copy of the disk, or a replica that was away, says the same of itself
--     as the newest one.
-- As soon as one of these does not hold, keeps is empty: not even the next fence relies on it, which may
-- begin from what this one has applied again. An edge whose ledger does not answer does not know. An edge that
-- keeps no send so any more says so, and sends nothing until that is kept, see fence/pledge.go.
--
-- KEYS[…]   those of shard.lua: KEYS[1…18]
-- KEYS[19]  edges    hash  edge → ms by the shard's clock; when it was last heard
-- KEYS[20]  reports  hash  edge → "stage own known": what it said in this fence
-- KEYS[21]  tail     zset  "number\nterm\ntime\nmovement\n…" by the entry's number: what edges have
--                          read of the journal and this server does not have, and the newest
--                          term that they know
--
-- ARGV[1]  channel  as in shard.lua
-- ARGV[2]  sale     as in shard.lua
-- ARGV[3]  schema   as in shard.lua
-- ARGV[4]  edge     the caller's id
-- ARGV[5]  term     the newest term that it knows; '': none
-- ARGV[6]  known    the newest number that it knows in it; with waits, the shard's newest before it told again
-- ARGV[7]  does     beat: it lives, and asks what it is to do; ready: this call has the last of what
--                   it knows; told: it has told again what no journal entry told; waits: so it
--                   has, but for what may follow from what other edges tell; lacks: but for what cannot be
--                   kept; leave: it is stopped; stop: so it is, and a fence waits for it, because a replica may lack
--                   what it was promised; resume: an operator gives up what is missing, in a fence that has begun;
--                   forget: an operator knows that this edge is silent; off: no fence is wanted
-- ARGV[8]  own      number of its promises that it has not read in the journal, and not told again
-- ARGV[9]  wait     ms that a fence waits for edges that do not come
-- ARGV[10] keeps    how the caller keeps what it sends, as in meta; '': in no way
-- ARGV[11] ledger   "epoch:number" that its ledger has; ?: it does not know yet; '': it has none
-- ARGV[12…] tail    for each entry: its number, its time, its movements
--
-- Returns { time, lead, seq, term, reply }:
--         { 'ok', fenced, absent, silent }
--                                      the caller may take stock for the time of a lease; the rest as in
--                                      meta, silent "heard edge\n…" of those that count
--         { 'late', last }             it knows movements after last that are lost, see docs/failover.md
--         { 'fenced', stage, fence, absent, stuck, base, more, others, contradicted }
--                                      absent: edges that are waited for; stuck: the number of an
--                                      entry that cannot be applied again, else 0; more: 1, the
--                                      next call goes on; others: other edges that may tell more;
--                                      contradicted: 1, an edge knows another history from stuck
--                                      on. stage may also be over: this call has ended the fence
--         { 'no_sale' } { 'restoring' } { 'schema', schema } { 'no_fence' }
--         { 'invalid', what }          an argument that no edge sends, by its name; nothing was changed
--         { 'not_fenced' }             to resume: there is nothing to give up, and nothing was changed
--
-- uses changes.lua: changed, dirty, entries, notice, split
-- uses flush.lua: flush
-- uses replay.lua: replay
-- uses shard.lua: META_KEY, SCHEMA_OF_TERMS, TOLERANCE, call, concat, find, int, knows_more, match, shard, stored, time
-- uses silent.lua: note_silent

local EDGES_KEY, REPORTS_KEY, TAIL_KEY = 19, 20, 21

local MOST_TERMS, ENTRIES_PER_CALL, FILL_PER_CALL = 64, 200, 500
-- ms; an edge that was heard so much earlier than another one has stopped
local SILENT_FOR = 60000
-- ms; a server that was heard so shortly ago and was never a replica has lost nothing
local HEARD_WITHIN = 45000

local edge, known_term, known, does = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local own, wait, keeps, ledger = ARGV[8], tonumber(ARGV[9]), ARGV[10], ARGV[11]

local function answer(reply) return { time, shard.lead, shard.seq, shard.term or '', reply } end

-- invalid names an argument that cannot be
local function invalid()
  local says = { beat = true, ready = true, told = true, waits = true, lacks = true, leave = true, stop = true, resume = true, forget = true, off = true }
  if edge == '' then return 'edge' end
  if not find(ARGV[6], '^%d+$') then return 'known' end
  if not says[does] then return 'does' end
  if not find(own, '^%d+$') then return 'own' end
  if not find(ARGV[9], '^%d+$') then return 'wait' end
  if keeps ~= '' and keeps ~= 'disk' and keeps ~= 'replicas' and keeps ~= 'both' then return 'keeps' end
  if not ledger or ledger ~= '' and ledger ~= '?' and not find(ledger, '^%d+:%d+$') then return 'ledger' end
  for i = 12, #ARGV, 3 do
    if not find(ARGV[i], '^%d+$') or not find(ARGV[i + 1] or '', '^%d+$') or not ARGV[i + 2] then return 'tail' end
  end
  return nil
end

if shard.schema > tonumber(ARGV[3]) then return answer({ 'schema', shard.schema }) end
local wrong = invalid()
if wrong then return answer({ 'invalid', wrong }) end
if shard.restoring then return answer({ 'restoring' }) end
if not shard.exists then return answer({ 'no_sale' }) end
if does == 'off' then
  if shard.term then
    -- terms stay: an edge that has a fence goes on where it was
    call('HDEL', KEYS[META_KEY], 'term', 'replid', 'run_id', 'beat', 'fence', 'keeps', 'came', 'silent')
    call('UNLINK', KEYS[EDGES_KEY], KEYS[REPORTS_KEY], KEYS[TAIL_KEY])
  end
  shard.term = false
  return answer({ 'no_fence' })
end

local info = call('INFO', 'replication')
local replid = match(info, 'master_replid:(%x+)')
if not replid then return answer({ 'no_fence' }) end

local meta = call('HMGET', KEYS[META_KEY], 'terms', 'run_id', 'beat', 'fence', 'keeps', 'asks', 'came', 'silent')
local terms, beat = split(meta[1] or '', '%S+'), tonumber(meta[3] or '0')

-- number_of is the number of a term; 0: none, or of another epoch
local function number_of(term)
  local epoch, n = match(term, '^(%d+):(%d+):')
  return epoch and tonumber(epoch) == shard.epoch and tonumber(n) or 0
end

-- first_of is the number of a term's first movement
local function first_of(term) return tonumber(match(term, '%d+$')) end

-- what is missing after a failover that no call has met yet is not known: it is not given up
local id, begun, base, stage = match(meta[4] or '', '^(%x+) (%d+) (%d+) (%a+)$')
if does == 'resume' and id ~= replid then return answer({ 'not_fenced' }) end
-- these are an edge's last words
local stops = does == 'leave' or does == 'stop'

local highest = number_of(terms[#terms] or '')

-- to_term begins a term with the next movement
local function to_term()
  highest = highest + 1
  shard.term = int(shard.epoch) .. ':' .. int(highest) .. ':' .. replid .. ':' .. int(shard.seq + 1)
  terms[#terms + 1] = shard.term
  local run_id = match(call('INFO', 'server'), 'run_id:(%x+)')
  changed.meta.term, changed.meta.replid, changed.meta.run_id = shard.term, replid, run_id
  changed.meta.terms = concat(terms, ' ', math.max(1, #terms - MOST_TERMS + 1))
  -- an edge that does not know the fence leaves the shard alone from now on
  if shard.schema < SCHEMA_OF_TERMS then changed.meta.schema = int(SCHEMA_OF_TERMS) end
  dirty = true
end

-- expected returns the edges that may have sold, with when each was last heard, and when the last
-- of all was, but no earlier than newest; the names of others, which have stopped; and all edges
local function expected(newest)
  local all, live, stopped, last = call('HGETALL', KEYS[EDGES_KEY]), {}, {}, {}
  for i = 1, #all, 2 do
    last[all[i]] = tonumber(all[i + 1])
    if last[all[i]] > shard.now + TOLERANCE then -- the shard's clock may have been ahead, see docs/failover.md#clocks
      last[all[i]] = shard.now
      call('HSET', KEYS[EDGES_KEY], all[i], int(shard.now))
    end
    newest = math.max(newest, last[all[i]])
  end
  for name, at in pairs(last) do
    if at + SILENT_FOR >= newest then live[name] = at elseif name ~= edge then stopped[#stopped + 1] = name end
  end
  return live, newest, stopped, last
end

-- note_keeps notes how the caller keeps what it sends, and drops the edges that have stopped
local function note_keeps(live)
  local words = {}
  for name, how in string.gmatch(meta[5] or '', '(%S+) (%a+)') do
    if (name ~= edge or does == 'stop') and live[name] then words[#words + 1] = name .. ' ' .. how end
  end
  if not stops and keeps ~= '' then words[#words + 1] = edge .. ' ' .. keeps end
  local text = concat(words, ' ')
  if text ~= (meta[5] or '') then changed.meta.keeps = text ~= '' and text end
end

local function lease()
  local live, _, stopped, last = expected(stops and 0 or shard.now)
  changed.meta.beat = int(time)
  note_keeps(live)
  local silent = note_silent(meta[7] or '', meta[8] or '', last, stopped, edge, does)
  dirty = true
  flush()
  if does == 'leave' then
    stopped[#stopped + 1] = edge
  elseif does ~= 'stop' then
    call('HSET', KEYS[EDGES_KEY], edge, int(shard.now))
  end
  for _, name in ipairs(stopped) do call('HDEL', KEYS[EDGES_KEY], name) end
  local fences = call('HMGET', KEYS[META_KEY], 'fenced', 'absent')
  return answer({ 'ok', fences[1] or '', fences[2] or '', silent })
end

if does == 'forget' then
  local _, _, _, last = expected(0)
  local silent = note_silent(meta[7] or '', meta[8] or '', last, {}, edge, does)
  flush()
  return answer({ 'ok', '', '', silent })
end

-- never_replica reports whether this server has never been a replica since it started
local function never_replica() return find(info, 'master_replid2:0+%s') end

-- same_server reports whether this server only has another id: it has never been a replica since
-- an edge was heard
local function same_server()
  return never_replica() and time - beat <= HEARD_WITHIN and match(call('INFO', 'server'), 'run_id:(%x+)') == meta[2]
end

-- has_all reports whether this server, which has no term, has what the caller knows in its: another edge
-- has switched the fence off, or the caller knows of none
local function has_all()
  if number_of(known_term) == 0 then return true end
  for _, name in ipairs(terms) do
    if name == known_term then return not knows_more(known_term, known) end
  end
  return never_replica() and find(known_term, replid, 1, true) and known <= shard.seq
end

if not shard.term then
  if has_all() then
    highest = math.max(highest, number_of(known_term))
    to_term()
    return lease()
  end
  highest = -1 -- this one comes before the caller's
  to_term()
elseif meta[4] then -- it is fenced already
elseif find(info, 'master_replid:' .. stored[13], 1, true) then
  if known_term == '' or not knows_more(known_term, known) then return lease() end
  -- of a term that this server does not have, the caller may share nothing from the last fence on
  local base = tonumber(match(call('HGET', KEYS[META_KEY], 'fenced') or '', '%d+$') or shard.seq)
  local last = math.min(base, first_of(known_term) - 1)
  for i, name in ipairs(terms) do
    if name == known_term then last = terms[i + 1] and first_of(terms[i + 1]) - 1 or shard.seq end
  end
  return answer({ 'late', last })
elseif same_server() and (known_term == '' or not knows_more(known_term, known)) then
  to_term()
  return lease()
end

-- the shard is fenced
begun, base = tonumber(begun or '0'), tonumber(base or '0')
if id ~= replid then
  begun, base, stage = time, shard.seq, 'collect'
  call('UNLINK', KEYS[REPORTS_KEY], KEYS[TAIL_KEY])
  notice = 'fence'
end
if not stops and does ~= 'resume' then
  if does ~= 'beat' or call('HEXISTS', KEYS[REPORTS_KEY], edge) == 0 then
    call('HSET', KEYS[REPORTS_KEY], edge, does .. ' ' .. own .. ' ' .. int(known) .. ' ' .. (known_term ~= '' and known_term or '0:0:0:0'))
  end
end
if stage == 'collect' then
  for i = 12, #ARGV, 3 do
    local number = tonumber(ARGV[i])
    if number > shard.seq then call('ZADD', KEYS[TAIL_KEY], number, ARGV[i] .. '\n' .. known_term .. '\n' .. ARGV[i + 1] .. '\n' .. ARGV[i + 2]) end
  end
end

local reports, said = call('HGETALL', KEYS[REPORTS_KEY]), {}
for i = 1, #reports, 2 do
  local s, o, k, term = match(reports[i + 1], '^(%a+) (%d+) (%d+) (%S+)$')
  said[reports[i]] = { stage = s, own = tonumber(o), known = tonumber(k), term = term }
  highest = math.max(highest, number_of(term))
end
local absent, unready, untold, others = 0, 0, 0, 0
local absentees = {}
local live, last_heard, _, heard = expected(0)
if stops then note_silent(meta[7] or '', meta[8] or '', heard, {}, edge, 'stop') end
-- a replica that has heard of no edge for long does not know which ones there are
local cut_off = not never_replica() and last_heard + SILENT_FOR < begun + shard.lead
-- is_absent counts an edge among those that did not come
local function is_absent(name)
  absent = absent + 1
  absentees[absent] = int(live[name] and live[name] - shard.lead or begun) .. ' ' .. name
end
for name in pairs(live) do
  if not said[name] then is_absent(name) end
end
for name, s in pairs(said) do
  if s.stage == 'beat' then unready = unready + 1 end
  s.tells = s.own > 0 and s.stage ~= 'told' and s.stage ~= 'lacks'
  if s.tells then
    untold = untold + 1
    -- one that waits tells again what may follow from what the shard has got since
    if name ~= edge and (s.stage ~= 'waits' or s.known < shard.seq) then others = others + 1 end
  end
end

-- seen_beyond reports whether an edge or the ledger has seen what this server did not have when the fence
-- began
local function seen_beyond()
  local function beyond(term, number)
    local epoch = tonumber(match(term, '^%d+') or '0')
    return epoch > shard.epoch or epoch == shard.epoch and number > base
  end
  if beyond(ledger, tonumber(match(ledger, '%d+$') or '0')) then return true end
  if stage ~= 'collect' then return false end -- they know what was told again since
  for _, s in pairs(said) do
    if beyond(s.term, s.known) then return true end
  end
  return beyond(known_term, known)
end

-- what keeps says, while it counts
local trusted = not cut_off and does ~= 'resume' and not seen_beyond() and meta[5] or ''
local asks = {}
for name in string.gmatch(id == replid and meta[6] or '', '%S+') do
  if name ~= edge or ledger == '' then asks[#asks + 1] = name end
end
if ledger == '?' then asks[#asks + 1] = edge end

local replayed, missing = 0, 0
if id == replid then
  local counts = split(call('HGET', KEYS[META_KEY], 'fenced') or '', '%d+')
  replayed, missing = tonumber(counts[4] or '0'), tonumber(counts[5] or '0')
end

-- keep_all reports whether there are edges that did not come, and have sent nothing that waits here
local function keep_all()
  -- way is how what this server acknowledged before was kept, where it was; nil: in no way. One that has begun
  -- to write its append-only file after its start has started from something older.
  local function way()
    if not never_replica() then return 'replicas' end
    local file = call('INFO', 'persistence')
    for _, line in ipairs({ 'aof_enabled:1', 'aof_rewrite_in_progress:0', 'aof_rewrite_scheduled:0', 'aof_last_rewrite_time_sec:-1' }) do
      if not find(file, line, 1, true) then return nil end
    end
    return 'disk'
  end
  local how, all = {}, absentees[1] and missing == 0 and not asks[1]
  for name, word in string.gmatch(trusted, '(%S+) (%a+)') do how[name] = word end
  local here = way()
  for _, line in ipairs(absentees) do
    local word = how[match(line, '^%d+ (%S+)$')]
    all = all and here and (word == here or word == 'both')
  end
  return all
end

local function note_fence(ended)
  changed.meta.fence = replid .. ' ' .. int(begun) .. ' ' .. int(base) .. ' ' .. stage
  changed.meta.fenced = int(highest) .. ' ' .. int(begun) .. ' ' .. int(ended) .. ' ' .. int(replayed) .. ' ' .. int(missing) .. ' ' .. int(absent) .. ' ' .. int(base)
  changed.meta.absent = absentees[1] and concat(absentees, '\n') or false
  changed.meta.keeps, changed.meta.asks = trusted ~= '' and trusted, asks[1] and concat(asks, ' ') or false
  dirty = true
end

-- entries that are written as they were
local function write_entry(last, at, text)
  shard.seq = last
  entries[#entries + 1] = { int(last), int(at), text }
end

-- fill stands in for numbers that no edge has
local function fill(upto)
  local words = {}
  for number = shard.seq + 1, upto do words[#words + 1] = 'missing\t' .. int(number) .. '\t\t\t\t\t' end
  missing = missing + #words
  write_entry(upto, shard.now, concat(words, '\n'))
end

-- newest is the newest term in which this server or an edge knows anything, and its first number.
-- What an edge of an older term knows from that number on is another history, which the
-- others went on without: that edge is late, as if it had come after them.
local newest, newest_first = shard.term, first_of(shard.term)
for _, s in pairs(said) do
  if number_of(s.term) > number_of(newest) and s.known >= first_of(s.term) then newest, newest_first = s.term, first_of(s.term) end
end

-- next_entries returns some of the entries that edges have sent and that can follow, by their
-- first numbers, the least of these, and whether there are more. It drops the others of them.
local function next_entries()
  local tail = call('ZRANGEBYSCORE', KEYS[TAIL_KEY], int(shard.seq + 1), '+inf', 'WITHSCORES', 'LIMIT', 0, ENTRIES_PER_CALL)
  local by_first, least, dropped = {}, math.huge, {}
  for i = 1, #tail, 2 do
    local last = tonumber(tail[i + 1])
    local term, at, text = match(tail[i], '^%d+\n([^\n]*)\n(%d+)\n(.*)$')
    local _, more = string.gsub(text, '\n', '\n')
    local first = last - more
    local has = by_first[first]
    if first <= shard.seq or term ~= newest and (has or term ~= '' and first >= newest_first and number_of(term) <= number_of(newest)) then
      dropped[#dropped + 1] = tail[i]
    else
      by_first[first] = { last = last, at = tonumber(at), text = text, count = more + 1 }
      least = math.min(least, first)
    end
  end
  if dropped[1] then call('ZREM', KEYS[TAIL_KEY], unpack(dropped)) end
  return by_first, least, #tail == 2 * ENTRIES_PER_CALL
end

-- apply_tail applies the next entries that edges have sent. It returns whether there are more,
-- and the number of one that cannot be applied.
local function apply_tail()
  local by_first, least, more = next_entries()
  if least < math.huge and least > shard.seq + 1 then
    fill(math.min(least - 1, shard.seq + FILL_PER_CALL))
    return true
  end
  local e = by_first[shard.seq + 1]
  while e do
    local text, lost = replay(e.text, e.at, shard.seq + 1)
    if not text then return false, e.last end
    replayed, missing = replayed + e.count - lost, missing + lost
    write_entry(e.last, e.at, text)
    by_first[e.last - e.count + 1] = nil
    e = by_first[shard.seq + 1]
  end
  return more or next(by_first) ~= nil
end

-- contradicted returns the number from which an edge knows another history than this server
-- has, or than another edge of a term with the same number; nil: there is none
local function contradicted()
  local has = {}
  for _, name in ipairs(terms) do has[name] = true end
  for _, s in pairs(said) do
    local first = first_of(s.term)
    if number_of(s.term) > 0 and not has[s.term] and s.known >= first then
      if first <= base then return first end
      if number_of(s.term) == number_of(newest) and s.term ~= newest then return math.min(first, newest_first) end
    end
  end
  return nil
end

-- take_over lists the newest term of the edges, in which they have sold what was applied again
local function take_over()
  for _, name in ipairs(terms) do
    if name == newest then return end
  end
  if newest_first <= shard.seq + 1 then terms[#terms + 1] = newest end
end

local stuck, more, other_history
if stage == 'collect' then
  stuck = contradicted()
  other_history = stuck
end
if stage == 'collect' and (does == 'resume' or not cut_off and absent + unready == 0 or time >= begun + wait) then
  if not stuck then more, stuck = apply_tail() end
  if not more and (not stuck or does == 'resume') then
    stage = 'tell'
    if not stuck then take_over() end
    to_term() -- what is told again has numbers of its own
  end
end
if stage == 'tell' and (does == 'resume' or untold == 0 or time >= begun + 2 * wait) then
  for name, s in pairs(said) do
    -- promises that were neither read nor told again
    if s.tells or s.stage == 'lacks' then missing = missing + s.own end
    if s.tells and s.stage ~= 'waits' or s.stage == 'beat' and number_of(s.term) > 0 and s.known > base then is_absent(name) end
  end
  local unsent = keep_all()
  if not unsent then trusted = '' end
  note_fence(time)
  changed.meta.unsent, changed.meta.asks = unsent and int(highest) .. ' ' .. int(begun), false
  local ended = replid .. ' ' .. int(begun) .. ' ' .. int(base) .. ' over'
  changed.meta.fence = false
  -- a token of a reservation that is lost may make it again, see confirm.lua
  if missing + absent > 0 or does == 'resume' then changed.meta.lost = int(time + TOLERANCE) end
  call('UNLINK', KEYS[REPORTS_KEY], KEYS[TAIL_KEY])
  notice = 'sale'
  flush()
  -- whether the caller is late shows when it asks again: it may know what was not applied
  return answer({ 'fenced', 'over', ended, absent, 0, base, 1, 0, 0 })
end
note_fence(0)
flush()
return answer({ 'fenced', stage, changed.meta.fence, absent, stuck or 0, base, more and 1 or 0, others, other_history and 1 or 0 })
