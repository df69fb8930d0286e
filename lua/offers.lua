-- offers.lua: an operator lets no more offers be made to people who wait, or lets them go on. Offers that are open stay
-- as they are, and people enter and leave as before.
--
-- a[1]  does   pause | resume
-- a[2]  cause  who
--
-- Returns { 'ok', changed }  0: it was so before, and nothing is written
--         { 'no_sale' }
--
-- uses changes.lua: operations, write_journal
-- uses shard.lua: int, shard
-- uses waitlist.lua: waitlist

function operations.offers(a)
  if not shard.exists then return { 'no_sale' } end
  local stops = a[1] == 'pause'
  if stops == waitlist.paused() then return { 'ok', 0 } end
  waitlist.pause(stops)
  write_journal(stops and 'offers_paused' or 'offers_resumed', int(shard.version), '', '', '', a[2], '')
  return { 'ok', 1 }
end
