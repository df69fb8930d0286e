-- What wrk sends. Arguments: the file of requests, the first number, how many to send
-- (0: until wrk's time is over).
--
-- The file has for each request a line with its length, then its bytes. In turn, all
-- of them are sent. A run of ten # in a request becomes a number that no other
-- request has, so that its length stays as it is.
local requests, total = {}, 0
-- wrk calls request once before it begins, to see what it is
local number, last, sent, most = 0, 0, -1, 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  number, most = tonumber(args[2]), tonumber(args[3])
  while true do
    local length = file:read("*l")
    if not length then break end
    total = total + 1
    requests[total] = file:read(tonumber(length))
  end
  file:close()
  local marked = requests[1]:find("##########", 1, true)
  if marked then
    for i, request in ipairs(requests) do
      local parts, from = {}, 1
      while true do
        local at = request:find("##########", from, true)
        if not at then break end
        parts[#parts + 1] = request:sub(from, at - 1)
        from = at + 10
      end
      parts[#parts + 1] = request:sub(from)
      requests[i] = parts
    end
    request = numbered
  end
end

-- stop ends the run: the thread, and wrk's main thread, which sleeps until the time is
-- over or interrupted.
local ffi = require "ffi"
ffi.cdef "int kill(int pid, int signal); int getpid(void);"
local function stop()
  wrk.thread:stop()
  ffi.C.kill(ffi.C.getpid(), 2)
end

local function next_request()
  if most > 0 then
    if sent == most then stop() end
    sent = sent + 1
  end
  last = last + 1
  if last > total then last = 1 end
  return requests[last]
end

function request() return next_request() end

function numbered()
  number = number + 1
  return table.concat(next_request(), string.format("%010d", number))
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\nsummary {"requests":%d,"bytes":%d,"microseconds":%d,"refused":%d,"broken":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.bytes, summary.duration, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
