-- flush.lua: write what the operations have noted. It comes before dispatch.lua in
-- every script.

-- many(command, key, list): in pieces, because Lua's stack is small
local function many(command, key, list)
  for i = 1, #list, 1000 do
    call(command, key, unpack(list, i, math.min(i + 999, #list)))
  end
end

-- flush_texts(key, changed): fields that are texts; false: the field goes
local function flush_texts(key, texts_changed)
  local set, del = {}, {}
  for field, text in pairs(texts_changed) do
    if text then
      set[#set + 1] = field
      set[#set + 1] = text
    else
      del[#del + 1] = field
    end
  end
  many('HSET', key, set)
  many('HDEL', key, del)
end

local function flush()
  if journal[1] then
    call('XADD', KEYS[10], int(shard.seq) .. '-0', 'v', '1', 'time', int(shard.now), 'movements', concat(journal, '\n'))
  end
  local set, del = {}, {}
  for name in pairs(changed.cells) do
    local c = cells[name]
    if c then
      set[#set + 1] = name
      set[#set + 1] = int(c[1]) .. ' ' .. int(c[2]) .. ' ' .. int(c[3]) .. ' ' .. int(c[4]) .. ' ' .. int(c[5])
    else
      del[#del + 1] = name
    end
  end
  many('HSET', KEYS[2], set)
  many('HDEL', KEYS[2], del)
  set, del = {}, {}
  for field in pairs(changed.limits) do
    local l = limits[field]
    if l[1] > 0 then
      set[#set + 1] = field
      set[#set + 1] = int(l[1]) .. ' ' .. int(l[2])
    else
      del[#del + 1] = field
    end
  end
  many('HSET', KEYS[3], set)
  many('HDEL', KEYS[3], del)
  set, del = {}, {}
  for id in pairs(changed.records) do
    if records[id] then
      set[#set + 1] = id
      set[#set + 1] = text_of(id)
    else
      del[#del + 1] = id
    end
  end
  many('HSET', KEYS[4], set)
  many('HDEL', KEYS[4], del)
  for i, name in ipairs({ 'deadlines', 'in_doubt', 'unbacked', 'tombstones' }) do
    set, del = {}, {}
    for id in pairs(zrem[name]) do if not zadd[name][id] then del[#del + 1] = id end end
    for id, at in pairs(zadd[name]) do
      set[#set + 1] = int(at)
      set[#set + 1] = id
    end
    many('ZREM', KEYS[4 + i], del)
    many('ZADD', KEYS[4 + i], set)
  end
  flush_texts(KEYS[9], changed.adjustments)
  set, del = {}, {}
  for field in pairs(changed.bindings) do
    local id = bindings[field]
    if id then
      set[#set + 1] = field
      set[#set + 1] = id
    else
      del[#del + 1] = field
    end
  end
  many('HSET', KEYS[11], set)
  many('HDEL', KEYS[11], del)
  flush_texts(KEYS[12], changed.returns)
  set, del = { 'seq', int(shard.seq), 'clock', int(shard.now) }, {}
  for field, value in pairs(changed.meta) do
    if value then
      set[#set + 1] = field
      set[#set + 1] = value
    else
      del[#del + 1] = field
    end
  end
  call('HSET', KEYS[1], unpack(set))
  many('HDEL', KEYS[1], del)
  if notice then call('PUBLISH', ARGV[1], notice .. ' ' .. ARGV[2] .. ' ' .. int(shard.seq)) end
end
