-- Checks each request with Latchkey. GATEWAY_ROUTES decides which permission it needs.
local url = string.format("http://%s:%s/access/forward", os.getenv("LATCHKEY_HOST"), os.getenv("LATCHKEY_PORT"))
local gateway_key = os.getenv("GATEWAY_KEY")

-- The headers of the client that Latchkey needs. No others are sent.
local sent = { "svc-api-key", "authorization", "origin", "traceparent", "tracestate" }
-- The headers of a denial that the client gets.
local returned = { "content-type", "retry-after", "www-authenticate", "x-latchkey-reason" }

local function request_headers(txn)
  local client = txn.http:req_get_headers()
  local headers = {
    ["svc-guard-key"] = { gateway_key },
    ["x-forwarded-for"] = { txn.f:src() },
    ["x-forwarded-method"] = { txn.f:method() },
    ["x-forwarded-host"] = { client["host"] and client["host"][0] or "" },
    ["x-forwarded-uri"] = { txn.f:pathq() },
  }
  for _, name in ipairs(sent) do
    -- Several values become one, which is not a valid key.
    headers[name] = client[name] and { table.concat(client[name], ", ", 0) }
  end
  return headers
end

-- Sets the identity headers and returns nil, or returns the reply to the client.
local function check(txn)
  local response = core.httpclient():get({ url = url, headers = request_headers(txn), timeout = 5000 })
  local headers = response.headers or {}
  if response.status == 200 then
    for name, values in pairs(headers) do
      if name:find("^x%-latchkey%-") then
        txn.http:req_set_header(name, values[0])
      end
    end
    return nil
  end
  if not headers["x-latchkey-reason"] then
    error("Latchkey is unreachable, or refuses the key of the gateway: status " .. tostring(response.status))
  end
  local reply = txn:reply({ status = response.status, body = response.body })
  for _, name in ipairs(returned) do
    if headers[name] then
      reply:add_header(name, headers[name][0])
    end
  end
  return reply
end

-- HAProxy forwards a request whose action fails. Therefore haproxy.cfg denies it without this variable.
core.register_action("latchkey", { "http-req" }, function(txn)
  local succeeded, reply = pcall(check, txn)
  if not succeeded then
    txn:log(core.err, tostring(reply))
  elseif reply then
    txn:done(reply)
  else
    txn:set_var("txn.latchkey_allowed", true)
  end
end)
