import fc from "fast-check";
import { hostileNames, lookAlike } from "./hostile.js";
import type { RawAnswer } from "./pipeline.js";
import { asBytes, type HeaderLines, type HttpInput, request } from "./request.js";
import { type FuzzWorld, goodOrigin } from "./world.js";

const spellings = ["svc-api-key", "SVC-API-KEY", "Svc-Api-Key", "sVC-aPI-kEY"];
const others = [
  ...["authorization", "x-api-key", "api-key", "svc_api_key", "svc-api-key-1", "x-svc-api-key"],
  ...["cookie", "proxy-authorization", "x-forwarded-svc-api-key", "trailer"],
];
const spaces = ["", " ", "\t", " \t "];

/** Keys in one header, two, or somewhere else: one good key in one right header is let in, and no other. */
export function keyRequests({ attacker, victim }: FuzzWorld): fc.Arbitrary<HttpInput> {
  const good = [attacker.management, attacker.private, attacker.public, attacker.session];
  const anyGood = fc.constantFrom(...good);
  const bad = fc.oneof(
    fc.constantFrom("", "junk", victim.nonce, '{"$ne":null}', "null", "*", "%00", "lk_", "0"),
    anyGood.chain(lookAlike).map(asBytes),
    fc
      .tuple(anyGood, fc.constantFrom(",", ", ", ";", " ", "\t", "%2c"), anyGood)
      .map((it) => it.join("")),
    anyGood.map((key) => `Bearer ${key}`),
    anyGood.map((key) => `"${key}"`),
  );
  const line = fc.tuple(
    fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...spellings) },
      { weight: 1, arbitrary: fc.constantFrom(...others) },
    ),
    fc.oneof(anyGood, bad),
    fc.constantFrom(...spaces),
    fc.constantFrom(...spaces),
  );
  return fc.array(line, { minLength: 1, maxLength: 3 }).map((lines) => {
    const headers = lines.map(
      ([name, key, before, after]) => [name, before + key + after] as const,
    );
    const [key = "", ...more] = lines.flatMap(([name, key]) =>
      name.toLowerCase() === "svc-api-key" ? key.trim() : [],
    );
    const isGood = good.includes(key) && more.length === 0;
    const accepts = ({ status, body }: RawAnswer) =>
      isGood ? status === 200 && body.includes(attacker.tenantId) : status === 401;
    return request("GET", "/whoami", accepts, headers);
  });
}

/** Pages that look like the one from which a key may be used, on hosts that look like ours. */
export function originRequests({ attacker }: FuzzWorld): fc.Arbitrary<HttpInput> {
  const origins = [
    ...["https://SHOP.example.com", "HTTPS://shop.example.com", "https://shop.example.com."],
    ...["https://shop.example.com:443", "https://shop.example.com/", "http://shop.example.com"],
    ...["https://shop.example.com:8443", "https://shop.example.com.evil.example", "null", "*", ""],
    ...["https://evil.example#https://shop.example.com", "https://shop.example.com@evil.example"],
    ...["https://shop.example.com\\@evil.example", "https://xn--shp-0na.example.com", "file://"],
    ...["https://shop%2eexample.com", "https://shop.example.com,https://shop.example.com"],
    ...["https://[::1]", "https://shop.example.com%00", "//shop.example.com", "shop.example.com"],
  ];
  const origin = fc.oneof(
    { weight: 1, arbitrary: fc.constant(goodOrigin) },
    { weight: 2, arbitrary: fc.constantFrom(...origins) },
    { weight: 2, arbitrary: lookAlike(goodOrigin).map(asBytes) },
  );
  const host = fc.constantFrom(
    ...[
      "localhost",
      "LOCALHOST",
      "localhost.",
      "localhost:80",
      "evil.example",
      "shop.example.com.",
    ],
    ...["127.0.0.1", "[::1]:99", "a@b", "xn--a", "", "localhost, evil.example", "..", "%6c"],
  );
  const lines = fc.array(fc.tuple(fc.constantFrom("origin", "Origin", "ORIGIN"), origin), {
    minLength: 1,
    maxLength: 2,
  });
  return fc.tuple(lines, host).map(([lines, host]) => {
    const isGood = lines.length === 1 && lines[0]?.[1].trim() === goodOrigin;
    const accepts = ({ status, head }: RawAnswer) => {
      const isTold = /\r\naccess-control-allow-origin:/i.test(head);
      return status === (isGood ? 200 : 403) && isTold === isGood;
    };
    const headers: HeaderLines = [["svc-api-key", attacker.withOrigin], ...lines];
    return request("GET", "/whoami", accepts, headers, undefined, host);
  });
}

const otherHeaders = [
  ...["x-http-method-override", "x-http-method", "x-method-override", "_method", "x-original-url"],
  ...["x-rewrite-url", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded"],
  ...["x-real-ip", "x-original-method", "x-tenant-id", "x-request-id", "traceparent", "tracestate"],
  ...["if-match", "if-none-match", "if-modified-since", "idempotency-key", "range", "accept"],
  ...["accept-encoding", "content-type", "content-encoding", "grpc-timeout", "connect-timeout-ms"],
  ...["connect-protocol-version", "te", "expect", "keep-alive", "via", "cookie", "user-agent"],
  ...["http2-settings", "x-user-agent", "grpc-encoding", "sec-websocket-key", "prefer", "date"],
];
const otherValues = [
  ...[
    "DELETE",
    "PUT",
    "GET",
    "*",
    '"1"',
    'W/"1"',
    '"1", "2"',
    "",
    "0",
    "-1",
    "1e309",
    "1",
    "99999999999",
  ],
  ...["127.0.0.1", "::1", "for=127.0.0.1;proto=https", "https", "gzip", "identity", "trailers"],
  ...["bytes=0-0", "bytes=0-,0-,0-", "application/json", "00-0-0-00", "a=b,c=d", "{}", "__proto__"],
  ...["1n", "1S", "0S", "99999999H", "1x", "../../etc/passwd", "/applications", "$" + "{7*7}"],
  ...["a".repeat(3_000), ",".repeat(500), "\u00ff\u00fe", "Sun, 06 Nov 1994 08:49:37 GMT"],
];

/** Good requests with headers that others would listen to. */
export function overrideRequests({ attacker, victim }: FuzzWorld): fc.Arbitrary<HttpInput> {
  const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  const names = [...otherHeaders, ...hostileNames.filter((name) => token.test(name))];
  const line = fc.tuple(
    fc.constantFrom(...names),
    fc.oneof(
      fc.constantFrom(...otherValues, `/applications/${victim.applicationId}`),
      fc.string({ maxLength: 20 }).map(asBytes),
    ),
  );
  const lines = fc.array(line, { minLength: 1, maxLength: 5 });
  const key = ["svc-api-key", attacker.management] as const;
  const self = lines.map((headers) =>
    request(
      "GET",
      "/whoami",
      ({ status, body }) =>
        // One that asks to be answered in no time at all is.
        status === 200 ? body.includes(attacker.tenantId) : /deadline|timeout/.test(body),
      [key, ...headers],
    ),
  );
  const theirs = fc
    .tuple(fc.constantFrom("GET", "POST", "PUT", "DELETE"), lines)
    .map(([verb, headers]) =>
      request(verb, `/applications/${victim.applicationId}`, ({ status }) => status >= 400, [
        key,
        ...headers,
      ]),
    );
  return fc.oneof(self, theirs);
}
