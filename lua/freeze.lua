-- freeze.lua: end all changes of a sale that is copied to another Redis. Nothing but the copying
-- ends that, here or there: see package move.
--
-- a[1]  schema  of a layout that no edge understands
--
-- Returns { 'ok' } { 'no_sale' }
--         { 'conflict', status }          it sells, or (merging) it is being rebuilt
--
-- uses changes.lua: changed, dirty, operations
-- uses shard.lua: int, shard

function operations.freeze(a)
  if not shard.exists then return { 'no_sale' } end
  if shard.merging then return { 'conflict', 'merging' } end
  if shard.status == 'open' then return { 'conflict', 'open' } end
  changed.meta.thaws, changed.meta.schema, dirty = int(shard.schema), a[1], true
  return { 'ok' }
end
