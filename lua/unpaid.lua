-- unpaid.lua: how many unpaid holds an identity has, and when others of it ended unpaid or
-- in doubt. It comes after shard.lua where it is needed.
--
-- A counter is a field of KEYS[13], kind|identity → "held t1 t2 …": unpaid holds, then times
-- in ms by the shard's clock, the oldest first. Held follows from the records. The times are
-- kept as well as can be: one that is lost refuses no buyer. One that lies ahead of the clock,
-- because a lead of it has ended since, does not count.
--
-- uses shard.lua: TOLERANCE, concat, int, match, shard

-- of times in a counter; more than one gets by any bounds that a sale may say
local MOST_TIMES = 200

-- parse_unpaid returns { t1, t2, …, held = n }
local function parse_unpaid(text)
  local c = { held = 0 }
  local first, rest = match(text or '', '^(%d+)(.*)$')
  if not first then return c end
  c.held = tonumber(first)
  for word in string.gmatch(rest, '%d+') do c[#c + 1] = tonumber(word) end
  return c
end

-- unpaid_text writes a counter; false: there is nothing in it
local function unpaid_text(c)
  if c.held == 0 and not c[1] then return false end
  local words = { int(c.held) }
  for i = math.max(1, #c - MOST_TIMES + 1), #c do words[#words + 1] = int(c[i]) end
  return concat(words, ' ')
end

-- counts reports whether a time counts of those after another one
local function counts(at, after) return at > after and at <= shard.now + TOLERANCE end

-- counting returns how many times count, and the n-th newest of them
local function counting(c, after, n)
  local found, nth = 0, nil
  for i = #c, 1, -1 do
    if counts(c[i], after) then
      found = found + 1
      if found == n then nth = c[i] end
    end
  end
  return found, nth
end

-- prune drops the times that do not count
local function prune(c, after)
  for i = #c, 1, -1 do
    if not counts(c[i], after) then table.remove(c, i) end
  end
end
