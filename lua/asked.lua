-- asked.lua: what a call asks for, so that only those operations are made. It comes
-- after shard.lua, where ARGV and the answer are described.
--
-- uses shard.lua: TOLERANCE, clock, fenced, shard, time

local out = { time, shard.lead, shard.seq, shard.term or '' }
-- sure_time is how late it is at least, whatever step Redis's time has made just now; 0: the
-- caller cannot tell
local sure_time = 0
if ARGV[4] ~= '' then
  sure_time = math.min(time, tonumber(ARGV[5]) + TOLERANCE)
  -- a step of Redis's time that the caller knows of does not get into the shard's clock
  local latest = tonumber(ARGV[4])
  if shard.now > latest + TOLERANCE then
    shard.ahead = shard.now - math.max(latest, clock)
    shard.now = shard.now - shard.ahead
  end
end
local refusal
if shard.schema > tonumber(ARGV[3]) then
  refusal = { 'schema', shard.schema } -- a newer edge has changed the layout
elseif shard.restoring and ARGV[8] ~= 'rebuilt' then
  refusal = { 'restoring' } -- half of the shard is missing
elseif fenced(ARGV[6], ARGV[7]) then
  refusal = { 'fenced' }
end

local names, arguments, asked = {}, {}, {}
do
  local i = 8
  while ARGV[i] do
    local name, n = ARGV[i], tonumber(ARGV[i + 1])
    if refusal then -- touch nothing
      out[#out + 1] = refusal
    elseif n <= 250 then
      arguments[#names + 1] = { unpack(ARGV, i + 2, i + 1 + n) }
    else -- Lua's stack is small
      local a = {}
      for j = 1, n do a[j] = ARGV[i + 1 + j] end
      arguments[#names + 1] = a
    end
    names[#names + 1] = name
    asked[name] = true
    i = i + 2 + n
  end
end
if refusal then return out end
if asked.sold then asked.confirm, asked['return'] = true, true end -- which it needs
if asked.probed then asked.probe, asked.confirm, asked.release = true, true, true end
if asked.perform then asked.adjust, asked.status = true, true end
