-- verdicts.lua: why an attempt gets no stock. reserve.lua and swap.lua find limits and counters each in their
-- own way, and give the functions that do; what refuses is only here.
--
-- Callers sum equal lines and limits; should one not, they are counted together here: no attempt gets
-- more than there is.
--
-- Returns nil where nothing refuses, else
--         { 'window', now } { 'limit', i } { 'pending', i } { 'unpaid', wait }
--         { 'unknown', i } { 'sold_out', i, available, left, seq } { 'all_held', i, available, left, seq }
--         as in reserve.lua
--
-- uses shard.lua: AVAILABLE, HELD, IN_DOUBT, cells, concat, match, shard, time

-- read_profile takes apart what attempts have in common, see reserve.lua
local function read_profile(text)
  local words = {}
  for word in string.gmatch(text, '%S+') do words[#words + 1] = word end
  local profile = {
    version = words[1], hold_for = tonumber(words[2]), margin = tonumber(words[3]), mode = words[4],
    cells = {}, units = {}, amounts = {}, most = {}, from = {}, to = {}, owed = 0,
  }
  if words[5] ~= '0' then
    local owed, at_once, ended, within = match(words[5], '^(%d+):(%d+):(%d+):(%d+)$')
    profile.owed, profile.at_once, profile.ended, profile.within = tonumber(owed), tonumber(at_once), tonumber(ended), tonumber(within)
  end
  local last = 6 + 2 * tonumber(words[6])
  profile.lines = concat(words, ' ', 7, last)
  for i = 1, tonumber(words[6]) do
    profile.cells[i], profile.units[i] = words[5 + 2 * i], tonumber(words[6 + 2 * i])
  end
  for i = 1, (#words - last) / 4 do
    local at = last + 4 * i
    profile.amounts[i], profile.most[i] = tonumber(words[at - 3]), tonumber(words[at - 2])
    profile.from[i], profile.to[i] = tonumber(words[at - 1]), tonumber(words[at])
  end
  return profile
end

-- limits_verdict looks at the limits behind a place. limit_at returns the field of the one at a place, and what
-- it has charged and pending. The second result is the limit in shadow that is full, as in the answer of
-- reserve.lua.
local function limits_verdict(profile, behind, limit_at)
  local amounts, over = profile.amounts, nil
  local asked = amounts[2] and {}
  for i = 1, #amounts do
    if time < profile.from[i] or time >= profile.to[i] then return { 'window', time } end
    local field, charged, pending = limit_at(behind + i)
    local amount, most = amounts[i], profile.most[i]
    if asked then
      amount = amount + (asked[field] or 0)
      asked[field] = amount
    end
    local bound = most < 0 and -most or most
    if charged + amount > bound then
      local full = charged - pending + amount > bound
      if most >= 0 then return full and { 'limit', i } or { 'pending', i } end
      over = over or (full and i or -i)
    end
  end
  return nil, over
end

-- unpaid_verdict looks at the counters of unpaid holds behind a place. unpaid_at returns how many the one at
-- a place has that are held, and of those that ended after a time the n-th newest.
local function unpaid_verdict(profile, behind, unpaid_at)
  local wait
  for i = 1, profile.owed do
    local held, oldest = unpaid_at(behind + i, shard.now - profile.within, profile.ended)
    if oldest then
      wait = math.max(wait or 0, oldest + profile.within - shard.now)
    elseif held >= profile.at_once then
      wait = wait or 0
    end
  end
  return wait and { 'unpaid', wait }
end

-- stock_verdict looks at cells that were read. back: by cell, how many units of it are about to come back; seq:
-- the journal's newest number now.
local function stock_verdict(profile, seq, back)
  local names, all_held = profile.cells, nil
  local asked = names[2] and {}
  for i = 1, #names do
    local name, units = names[i], profile.units[i]
    local c = cells[name]
    if not c then return { 'unknown', i } end
    if asked then
      units = units + (asked[name] or 0)
      asked[name] = units
    end
    if c[AVAILABLE] + (back[name] or 0) < units then
      local left = c[AVAILABLE] + c[HELD] + c[IN_DOUBT]
      if left < units then return { 'sold_out', i, c[AVAILABLE], left, seq } end
      all_held = all_held or { 'all_held', i, c[AVAILABLE], left, seq }
    end
  end
  return all_held
end
