-- probe.lua: lease reservations in doubt about which the shop is to be asked now, so
-- that one edge asks and the others do not.
--
-- a[1]  gate     whose reservations
-- a[2]  most     how many in doubt to look at in this call, the oldest first
-- a[3]  offset   how many to pass over
-- a[4]  wait     ms until the next try after the first; doubled with every try
-- a[5]  tries    how often one reservation is asked about
-- a[6]  longest  ms between two tries at most
-- a[7]  leases   how many to lease at most: as many as can be asked about at once,
--                before another edge may lease them again; none: all that are looked at
--
-- Returns { 'ok', next, id, ref, deadline, … }: next is where to go on, 0: all have been
-- looked at; then three for each reservation that is leased
--
-- uses changes.lua: DEADLINE, GATE, PROBES, REF, STATE, operations, read_record, split, write_record
-- uses shard.lua: IN_DOUBT_KEY, call, int, shard
-- uses states.lua: too_soon

-- probes_of reads tries, next_at, absent, counted
local function probes_of(r)
  local n = split(r[PROBES], '%d+')
  return tonumber(n[1] or '0'), tonumber(n[2] or '0'), tonumber(n[3] or '0'), tonumber(n[4] or '0')
end

local function write_probes(id, r, tries, next_at, absent, counted)
  r[PROBES] = int(tries) .. ' ' .. int(next_at) .. ' ' .. int(absent) .. ' ' .. int(counted)
  write_record(id, r)
end

function operations.probe(a)
  local gate, most, offset = a[1], tonumber(a[2]), tonumber(a[3])
  local wait, most_tries, longest = tonumber(a[4]), tonumber(a[5]), tonumber(a[6])
  local leases = tonumber(a[7] or a[2])
  local ids = call('ZRANGE', KEYS[IN_DOUBT_KEY], int(offset), int(offset + most - 1))
  local out, looked = { 'ok', 0 }, 0
  for _, id in ipairs(ids) do
    if #out >= 2 + 3 * leases then break end
    looked = looked + 1
    local r = read_record(id)
    if r and r[STATE] == 'in_doubt' and r[GATE] == gate then
      local tries, next_at, absent, counted = probes_of(r)
      if tries < most_tries and next_at <= shard.now then
        -- the shop's answer to a question of before the deadline proves no absence,
        -- whenever it comes
        if too_soon(r) > 0 then counted = tries + 1 end
        write_probes(id, r, tries + 1, shard.now + math.min(wait * 2 ^ tries, longest), absent, counted)
        out[#out + 1] = id
        out[#out + 1] = r[REF]
        out[#out + 1] = r[DEADLINE] - shard.lead
      end
    end
  end
  if looked < #ids or #ids == most then out[2] = offset + looked end
  return out
end
