-- anew.lua: the times of a hold whose order is sent, or waits again. send.lua, again.lua and yield.lua need it.
--
-- uses asked.lua: sure_time
-- uses changes.lua: BUYER, CAUSE, CHANGED, CREATED, DEADLINE, EXP, MODE, text_of, write_journal, write_record
-- uses shard.lua: TOLERANCE, shard, time
-- uses states.lua: index

-- begin_anew begins a held hold again. A step of Redis's time that the caller knows of gets into none of
-- its times: its token would be good for too long. The record keeps the cause as long as it is held:
-- that its order was sent must be known also where the line is lost.
local function begin_anew(id, r, mode, hold_for, margin, cause)
  local own = time
  if sure_time > 0 and time > sure_time then own = sure_time - TOLERANCE end
  r[MODE], r[DEADLINE], r[EXP] = mode, shard.now + hold_for, own + hold_for - margin
  r[CREATED], r[CHANGED], r[CAUSE] = own, shard.now, cause
  index(id, 'held', r[DEADLINE])
  write_record(id, r)
  write_journal('extended', id, 'held', '', r[BUYER], cause, text_of(id))
end
