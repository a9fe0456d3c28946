-- Sends GET requests with the keys of a file in turn, and prints one line of JSON at the end.
local requests = {}
local sent = 0

function init(args)
  for key in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("GET", nil, { ["svc-api-key"] = key })
  end
end

function request()
  sent = sent % #requests + 1
  return requests[sent]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout
  ))
end
