-- OpenResty's way: ngx.req.get_uri_args, get_post_args, cjson, ngx.var.
local cjson = require "cjson.safe"

local function value(v)
    if v == nil or v == cjson.null then return nil end
    if type(v) == "string" then return "s:" .. v end
    if type(v) == "number" then return "n:" .. string.format("%.17g", v) end
    return "x:" .. type(v)
end

local function casts(sku)
    if type(sku) ~= "string" and type(sku) ~= "number" then return nil end
    local n = tonumber(sku)
    if not n then return nil end
    local out = {}
    for i, v in ipairs { n, math.floor(n), math.floor(n + 0.5), math.ceil(n) } do out[i] = string.format("%.17g", v) end
    return out
end

local function reading(how, from, got)
    local r = { how = how, from = from }
    if type(got) ~= "table" then return r end
    r.sku, r.quantity, r.user, r.casts = value(got.sku), value(got.quantity), value(got.user), casts(got.sku)
    local order = got.order
    local items = type(order) == "table" and order.items or nil
    if type(items) == "table" and next(items) then
        r.lines = {}
        for i, l in ipairs(items) do
            r.lines[i] = type(l) == "table" and { value(l.sku) or cjson.null, value(l.count) or cjson.null } or { "x:line", cjson.null }
        end
    elseif items ~= nil and items ~= cjson.null then
        r.lines = { { "x:" .. type(items), cjson.null } }
    end
    return r
end

local function merged(...)
    local out = {}
    for _, part in ipairs { ... } do
        for k, v in pairs(type(part) == "table" and part or {}) do out[k] = v end
    end
    return out
end

ngx.req.read_body()
local kind = (ngx.var.content_type or ""):lower()
local query, form, json = ngx.req.get_uri_args(), {}, {}
if kind:find("json", 1, true) or kind:find("text/plain", 1, true) then
    json = cjson.decode(ngx.req.get_body_data() or "")
    if json == nil then
        ngx.status = 400
        ngx.say(cjson.encode { error = "no JSON" })
        return
    end
elseif kind:find("urlencoded", 1, true) then
    form = ngx.req.get_post_args()
end
local readings = {
    reading("ngx.req.get_uri_args", "query", query),
    reading("ngx.req.get_post_args", "body", form),
    reading("cjson.decode", "body", json),
    reading("query, form, json", "merged", merged(query, form, json)),
    reading("json, form, query", "merged", merged(json, form, query)),
    reading("ngx.var.arg_", "query", { sku = ngx.var.arg_sku and ngx.unescape_uri(ngx.var.arg_sku),
        quantity = ngx.var.arg_quantity and ngx.unescape_uri(ngx.var.arg_quantity),
        user = ngx.var.arg_user and ngx.unescape_uri(ngx.var.arg_user) }),
    reading("ngx.var.cookie_", "cookie", { sku = ngx.var.cookie_sku, quantity = ngx.var.cookie_quantity, user = ngx.var.cookie_user }),
    reading("ngx.var.http_", "header", { sku = ngx.var.http_x_sku, quantity = ngx.var.http_x_quantity, user = ngx.var.http_x_user_id }),
}
local sku, quantity = ngx.var.uri:match("^/path/([^/]+)/([^/]+)$")
if sku then readings[#readings + 1] = reading("ngx.var.uri", "path", { sku = sku, quantity = quantity }) end
ngx.header["Content-Type"] = "application/json"
ngx.print(cjson.encode {
    method = ngx.req.get_method(), path = ngx.var.uri, token = ngx.var.http_stockgate_token or "", readings = readings,
})
