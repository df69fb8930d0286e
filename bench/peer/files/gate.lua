-- The gate as it is written with nginx and Lua today: read who wants what, refuse what
-- the worker knows by itself, else ask Redis with one script, then let the request
-- pass to the shop. Settings are in config.lua beside this file; items.txt has a
-- line "sku stock" for each item, denied.txt a line for each buyer.

local cjson = require "cjson.safe"
local redis = require "nginx.redis"
local config = require "config"

local ngx = ngx
local var, req, header = ngx.var, ngx.req, ngx.header
local items, denied = ngx.shared.items, ngx.shared.denied
local ON_SALE, SOLD_OUT = 1, 0

local gate = {}

function gate.load(dir)
  for line in io.lines(dir .. "/items.txt") do
    local sku, stock = line:match("^(%S+) (%d+)$")
    assert(items:safe_set(sku, tonumber(stock) > 0 and ON_SALE or SOLD_OUT))
  end
  for line in io.lines(dir .. "/denied.txt") do
    assert(denied:safe_set(line, true))
  end
end

local refusals = {}
local function refuse(status, reason)
  local body = refusals[reason]
  if not body then
    body = '{"reason":"' .. reason .. '"}'
    refusals[reason] = body
  end
  ngx.status = status
  header["Content-Type"] = "application/json"
  header["Cache-Control"] = "no-store"
  header["Content-Length"] = #body
  ngx.print(body)
  return ngx.exit(ngx.HTTP_OK)
end

local function read()
  local buyer
  if config.in_query then buyer = var.arg_buyer else buyer = var.http_x_user_id end
  if config.get then
    return buyer, var.arg_sku, tonumber(var.arg_quantity or 1)
  end
  req.read_body()
  local body = req.get_body_data()
  local order = body and cjson.decode(body)
  if type(order) ~= "table" then return buyer end
  return buyer, order.sku, order.quantity or 1
end

-- reserve runs the script: what is left, or -1 unknown, -2 limit, -3 sold out.
local function reserve(sku, quantity, buyer)
  local r = redis:new()
  r:set_timeout(5000) -- what is measured is not how soon it gives up
  if not r:connect("127.0.0.1", config.redis) then return nil end
  local left = r:evalsha(config.sha, 2, "stock", "bought", sku, quantity, buyer, config.max)
  r:set_keepalive(60000, 256)
  return left
end

function gate.access()
  local buyer, sku, quantity = read()
  if not buyer or buyer == "" then return refuse(401, "no_buyer") end
  if type(sku) ~= "string" or type(quantity) ~= "number" or quantity < 1 or quantity > 10000 or quantity % 1 ~= 0 then
    return refuse(400, "malformed")
  end
  if config.deny and denied:get(buyer) then return refuse(403, "denied") end
  local now = ngx.now()
  if now < config.starts then return refuse(409, "not_started") end
  if now >= config.ends then return refuse(410, "ended") end
  if config.flag then
    local state = items:get(sku)
    if not state then return refuse(404, "unknown_item") end
    if state == SOLD_OUT then return refuse(409, "sold_out") end
  end
  local left = reserve(sku, quantity, buyer)
  if not left then return refuse(503, "unavailable") end
  if left == -1 then return refuse(404, "unknown_item") end
  if left == -2 then return refuse(403, "limit_reached") end
  if left == -3 then
    if config.flag then items:set(sku, SOLD_OUT) end
    return refuse(409, "sold_out")
  end
end

return gate
