-- Sends the requests of a file in a loop and prints one line of JSON at the end. Each request in the
-- file is a line with its length, followed by its bytes.
local requests = {}
local sent = 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  for length in file:lines() do
    requests[#requests + 1] = file:read(tonumber(length))
  end
  file:close()
end

function request()
  sent = sent % #requests + 1
  return requests[sent]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"statusErrors":%d,"connectionErrors":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout
  ))
end
