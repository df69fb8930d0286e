-- lookup.lua: find the reservation to which an attempt's key or ref belongs already,
-- without making one. It changes nothing.
--
-- a[1]  guard  the binding of its idempotency key, or of its buyer and lines; '': none
-- a[2]  print  hash of what is asked under the key
-- a[3]  ref    the shop's own name of the order, or ''
-- a[4]  buyer  hash of the buyer
-- a[5]  lines  "cell quantity …"
-- a[6]  shared 1: the ref is that of one order for all buyers; 0: of one buyer's
--
-- Returns { 'ok' }    nothing belongs to another reservation
--         { 'bound', by, id, state, same, created, deadline, exp, changed, epoch }, see bindings.lua
--
-- uses bindings.lua: bound_verdict, buyer_ref
-- uses changes.lua: operations, reads, want, wanted_bindings

function reads.lookup(a)
  if a[1] ~= '' then want(wanted_bindings, a[1]) end
  if a[3] ~= '' then
    want(wanted_bindings, buyer_ref(a[4], a[3]))
    want(wanted_bindings, 'r|' .. a[3])
  end
end

function operations.lookup(a)
  local found = bound_verdict(a[1], a[2], a[3], a[6] == '1', a[4], a[5])
  if found then return { 'bound', unpack(found) } end
  return { 'ok' }
end
