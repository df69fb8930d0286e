-- cancel.lua: take back an act that is planned, or forget one that failed.
--
-- a[1]  number  of the act
--
-- Returns { 'ok', line }  as acts.lua keeps it
--         { 'conflict', line }  it is done
--         { 'not_found' } { 'no_sale' }
--
-- uses acts.lua: read_acts, with_number, write_acts, write_done
-- uses changes.lua: notice, operations
-- uses shard.lua: find, shard

function operations.cancel(a)
  if not shard.exists then return { 'no_sale' } end
  local number, coming = tonumber(a[1]), read_acts('acts')
  local i = with_number(coming, number)
  if i then
    local act = table.remove(coming, i)
    write_acts(coming)
    notice = 'sale'
    return { 'ok', act.line }
  end
  local done = read_acts('acts_done')
  i = with_number(done, number)
  if not i then return { 'not_found' } end
  if not find(done[i].line, '\tfailed\t', 1, true) then return { 'conflict', done[i].line } end
  local act = table.remove(done, i)
  write_done(done)
  return { 'ok', act.line }
end
