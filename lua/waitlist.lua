-- waitlist.lua: people who wait for units of an item, in the order in which they came. Its function is made in
-- calls of a shard of which a person has entered, or for an operation of the waiting list: others must look at
-- shard.waitlist first.
--
-- An entry is of one person and one cell. It waits, or it has an offer: a hold in mode offer, with the id
-- w<number>.<since>, of which the shop does not know. When that hold ends, so does the entry. In another life of the
-- sale numbers may begin at 1 again, and since is another one.
--
-- KEYS[18] has entries and the people's identities in blocks, because a field costs more than what is in it:
--   last      number of the newest entry
--   live      how many entries there are
--   paused    ms by the shard's clock, since when an operator lets no offer be made; absent: offers are made
--   n|offers  how many offers were made; n|why, how many entries have ended: accepted, lapsed, left, closed or other
--   c|cell    "waiting offered", entries of the cell
--   offers    " block:n …", the blocks that have entries with an offer, and how many, in their order
--   e|block   entries of 32 numbers, for each "\nnumber state cell quantity since buyer identity …": state, w waits
--             or o has an offer; since, ms by the shard's clock; identity, kind=hash
--   i|bucket  "\nhash number" for each identity of each entry: the first letters of the hash
--
-- uses changes.lua: BUYER, CAUSE, LINES, STATE, changed, pairs_of
-- uses shard.lua: SCHEMA_OF_WAITLISTS, WAITLIST_KEY, call, int, match, shard

-- fields of the index
local BUCKETS = 2048
-- entries in a block, and letters of a hash in the index
local WIDTH, LETTERS = 32, 16
-- ms: while its sale is paused, the exp of an offer is no time but what is left of it, which is less
local TIMES = 1000000000000

local function open_waitlist()
  local known = {} -- fields of KEYS[18] that were read, as they will be kept; false: none
  local written = {}

  local function read(field)
    local text = known[field]
    if text == nil then
      text = call('HGET', KEYS[WAITLIST_KEY], field)
      known[field] = text
    end
    return text
  end

  local function write(field, text)
    known[field] = text ~= '' and text
    written[field] = true
  end

  local function number_in(field)
    local text = read(field)
    return text and match(text, '^%d+$') and #text < 16 and tonumber(text) or 0
  end

  local function block_of(number) return 'e|' .. int(math.floor((number - 1) / WIDTH)) end

  local blocks -- by their numbers, how many of their entries have an offer; nil: that was not read

  local function blocks_with_offers()
    if not blocks then
      blocks = {}
      for block, n in string.gmatch(read('offers') or '', '(%d+):(%d+)') do
        if #block < 16 and #n < 16 then blocks[tonumber(block)] = tonumber(n) end
      end
    end
    return blocks
  end

  -- note_offers counts offers in the block of an entry
  local function note_offers(number, n)
    local all, block = blocks_with_offers(), math.floor((number - 1) / WIDTH)
    local left = (all[block] or 0) + n
    all[block] = left > 0 and left or nil
    written.offers = true
  end

  local function text_of_offers()
    local order, words = {}, {}
    for block in pairs(blocks) do order[#order + 1] = block end
    table.sort(order)
    for i, block in ipairs(order) do words[i] = ' ' .. int(block) .. ':' .. int(blocks[block]) end
    return words[1] ~= nil and table.concat(words)
  end

  -- offers returns the ids of the offers, in the order of their entries
  local function offers()
    local fields, numbers, ids = {}, {}, {}
    for block in pairs(blocks_with_offers()) do
      if known['e|' .. int(block)] == nil then fields[#fields + 1] = 'e|' .. int(block) end
    end
    for i = 1, #fields, 1000 do
      local last = math.min(i + 999, #fields)
      for j, text in ipairs(call('HMGET', KEYS[WAITLIST_KEY], unpack(fields, i, last))) do known[fields[i + j - 1]] = text end
    end
    for block in pairs(blocks) do
      for number, since in string.gmatch(known['e|' .. int(block)] or '', '\n(%d+) o %S+ %d+ (%d+) ') do
        if #number < 16 and #since < 16 and not ids[tonumber(number)] then
          numbers[#numbers + 1], ids[tonumber(number)] = tonumber(number), 'w' .. number .. '.' .. since
        end
      end
    end
    table.sort(numbers)
    for i, number in ipairs(numbers) do numbers[i] = ids[number] end
    return numbers
  end

  -- counts of a cell: how many wait, and how many have an offer
  local function counts(cell)
    local waiting, offered = match(read('c|' .. cell) or '', '^(%d+) (%d+)$')
    if not waiting or #waiting > 15 or #offered > 15 then return 0, 0 end -- another client has damaged it
    return tonumber(waiting), tonumber(offered)
  end

  local function count(cell, waits, has_offer)
    local waiting, offered = counts(cell)
    waiting, offered = math.max(waiting + waits, 0), math.max(offered + has_offer, 0)
    write('c|' .. cell, waiting + offered > 0 and int(waiting) .. ' ' .. int(offered) or '')
  end

  -- entry_of returns an entry; nil: there is none of this number
  local function entry_of(number)
    local text = read(block_of(number))
    local from, to, state, cell, quantity, since, buyer, identities
    if text then from, to, state, cell, quantity, since, buyer, identities = string.find(text, '\n' .. int(number) .. ' (%a) (%S+) (%d+) (%d+) (%S+)([^\n]*)') end
    if not from then return nil end
    return { number = number, state = state, cell = cell, quantity = tonumber(quantity), since = tonumber(since), buyer = buyer, identities = identities }, text, from, to
  end

  local function line_of(e)
    return '\n' .. int(e.number) .. ' ' .. e.state .. ' ' .. e.cell .. ' ' .. int(e.quantity) .. ' ' .. int(e.since) .. ' ' .. e.buyer .. e.identities
  end

  -- replace puts another line in an entry's place
  local function replace(number, line)
    local e, text, from, to = entry_of(number)
    if not e then return end
    write(block_of(number), string.sub(text, 1, from - 1) .. line .. string.sub(text, to + 1))
  end

  -- each hash by which a person is known: the buyer's first
  local function hashes(buyer, identities)
    local all = { buyer }
    for hash in string.gmatch(identities, '=(%S+)') do all[#all + 1] = hash end
    return all
  end

  local function bucket_of(hash)
    return 'i|' .. int(tonumber(string.sub(redis.sha1hex(hash), 1, 6), 16) % BUCKETS)
  end

  -- pattern_of is the line of a hash in its bucket. Hashes have letters, digits, - and _
  local function pattern_of(hash) return '\n' .. string.gsub(string.sub(hash, 1, LETTERS), '%-', '%%-') .. ' (%d+)' end

  local function number_under(hash)
    local text = read(bucket_of(hash))
    local number = text and match(text, pattern_of(hash))
    return number and tonumber(number)
  end

  -- numbers_of returns the entries that a person's identities have, each once
  local function numbers_of(buyer, identities)
    local numbers, seen = {}, {}
    for _, hash in ipairs(hashes(buyer, identities)) do
      local n = number_under(hash)
      if n and not seen[n] then
        seen[n], numbers[#numbers + 1] = true, n
      end
    end
    return numbers
  end

  -- keep notes that people have waited: from now on an edge that does not know of them leaves the shard alone
  local function keep()
    if shard.waitlist then return end
    shard.waitlist, changed.meta.waitlist = true, '1'
    if shard.schema < SCHEMA_OF_WAITLISTS then changed.meta.schema = int(SCHEMA_OF_WAITLISTS) end
  end

  -- put makes an entry. Identities that another one has stay with that.
  local function put(e)
    keep()
    if e.number > number_in('last') then write('last', int(e.number)) end
    write(block_of(e.number), (read(block_of(e.number)) or '') .. line_of(e))
    for _, hash in ipairs(hashes(e.buyer, e.identities)) do
      if not number_under(hash) then
        local bucket = bucket_of(hash)
        write(bucket, (read(bucket) or '') .. '\n' .. string.sub(hash, 1, LETTERS) .. ' ' .. int(e.number))
      end
    end
    write('live', int(number_in('live') + 1))
    count(e.cell, e.state == 'w' and 1 or 0, e.state == 'o' and 1 or 0)
    if e.state == 'o' then note_offers(e.number, 1) end
  end

  -- why entries end, where that is counted by itself
  local reasons = { accepted = true, lapsed = true, left = true, closed = true }

  local function add(field) write(field, int(number_in(field) + 1)) end

  -- take deletes an entry, and counts why
  local function take(number, why)
    local e = entry_of(number)
    if not e then return end
    add('n|' .. (reasons[why] and why or 'other'))
    replace(number, '')
    for _, hash in ipairs(hashes(e.buyer, e.identities)) do
      if number_under(hash) == number then
        local bucket = bucket_of(hash)
        write(bucket, (string.gsub(read(bucket), pattern_of(hash), '', 1)))
      end
    end
    write('live', int(math.max(number_in('live') - 1, 0)))
    count(e.cell, e.state == 'w' and -1 or 0, e.state == 'o' and -1 or 0)
    if e.state == 'o' then note_offers(number, -1) end
  end

  -- offer notes that an entry that waits has an offer of so many units
  local function offer(number, quantity)
    local e = entry_of(number)
    if not e or e.state ~= 'w' then return end
    e.state, e.quantity = 'o', quantity
    replace(number, line_of(e))
    count(e.cell, -1, 1)
    add('n|offers')
    note_offers(number, 1)
  end

  local function paused() return number_in('paused') > 0 end

  -- pause lets no offer be made from now on, or lets them go on
  local function pause(stops)
    keep()
    write('paused', stops and int(shard.now) or '')
  end

  -- id_of is the id of the hold that is the offer to an entry
  local function id_of(e) return 'w' .. int(e.number) .. '.' .. int(e.since) end

  local function number_of(id)
    local number = match(id, '^w(%d+)%.%d+$')
    return number and tonumber(number)
  end

  -- ended ends the entry whose offer has ended
  local function ended(id, why)
    local number = number_of(id)
    local e = number and entry_of(number)
    if e and id_of(e) == id then take(number, why) end
  end

  -- follow brings the list to what has become of an offer, where the entry may have been lost
  local function follow(id, r)
    local number, line = number_of(id), pairs_of(r[LINES])[1]
    if not number or not line then return end
    if r[STATE] ~= 'held' then return ended(id, r[CAUSE]) end
    local e = entry_of(number)
    if e then
      if id_of(e) == id then offer(number, line[2]) end
    elseif not number_under(r[BUYER]) then
      put({ number = number, state = 'o', cell = line[1], quantity = line[2], since = tonumber(match(id, '%d+$')), buyer = r[BUYER], identities = '' })
    end
  end

  return {
    entry = entry_of, numbers = numbers_of, number_under = number_under, counts = counts, put = put, take = take, offer = offer, number_in = number_in,
    offers = offers, id_of = id_of, ended = ended, follow = follow, keep = keep, paused = paused, pause = pause,
    fields = function()
      local all = {}
      if written.offers then known.offers = text_of_offers() end
      for field in pairs(written) do all[field] = known[field] end
      return all
    end,
  }
end

local waitlist = open_waitlist()
