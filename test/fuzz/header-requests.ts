import fc from "fast-check";
import { lookalike, maliciousNames } from "./arbitraries.js";
import { allowedOrigin, type FuzzFixtures } from "./fixtures.js";
import {
  buildRequest,
  type HeaderList,
  type PipelinedInput,
  type RawResponse,
  toHeaderBytes,
} from "./pipeline.js";

const spellings = ["svc-api-key", "SVC-API-KEY", "Svc-Api-Key", "sVC-aPI-kEY"];
const otherNames = [
  ...["authorization", "x-api-key", "api-key", "svc_api_key", "svc-api-key-1", "x-svc-api-key"],
  ...["cookie", "proxy-authorization", "x-forwarded-svc-api-key", "trailer"],
];
const spaces = ["", " ", "\t", " \t "];

/** Keys in one or several headers. Only one valid key in one correct header is accepted. */
export function keyRequests({ attacker, victim }: FuzzFixtures): fc.Arbitrary<PipelinedInput> {
  const validKeys = [attacker.management, attacker.private, attacker.public, attacker.session];
  const validKey = fc.constantFrom(...validKeys);
  const invalidKey = fc.oneof(
    fc.constantFrom("", "junk", victim.nonce, '{"$ne":null}', "null", "*", "%00", "lk_", "0"),
    validKey.chain(lookalike).map(toHeaderBytes),
    fc
      .tuple(validKey, fc.constantFrom(",", ", ", ";", " ", "\t", "%2c"), validKey)
      .map((it) => it.join("")),
    validKey.map((key) => `Bearer ${key}`),
    validKey.map((key) => `"${key}"`),
  );
  const line = fc.tuple(
    fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...spellings) },
      { weight: 1, arbitrary: fc.constantFrom(...otherNames) },
    ),
    fc.oneof(validKey, invalidKey),
    fc.constantFrom(...spaces),
    fc.constantFrom(...spaces),
  );
  return fc.array(line, { minLength: 1, maxLength: 3 }).map((lines) => {
    const headers = lines.map(
      ([name, key, before, after]) => [name, before + key + after] as const,
    );
    const [key = "", ...extra] = lines.flatMap(([name, key]) =>
      name.toLowerCase() === "svc-api-key" ? key.trim() : [],
    );
    const isValid = validKeys.includes(key) && extra.length === 0;
    const accepts = ({ status, body }: RawResponse) =>
      isValid ? status === 200 && body.includes(attacker.tenantId) : status === 401;
    return buildRequest("GET", "/whoami", accepts, headers);
  });
}

/** Origins that resemble the allowed one, with various hosts. */
export function originRequests({ attacker }: FuzzFixtures): fc.Arbitrary<PipelinedInput> {
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
    { weight: 1, arbitrary: fc.constant(allowedOrigin) },
    { weight: 2, arbitrary: fc.constantFrom(...origins) },
    { weight: 2, arbitrary: lookalike(allowedOrigin).map(toHeaderBytes) },
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
    const isValid = lines.length === 1 && lines[0]?.[1].trim() === allowedOrigin;
    const accepts = ({ status, head }: RawResponse) => {
      const hasCorsHeader = /\r\naccess-control-allow-origin:/i.test(head);
      return status === (isValid ? 200 : 403) && hasCorsHeader === isValid;
    };
    const headers: HeaderList = [["svc-api-key", attacker.withOrigin], ...lines];
    return buildRequest("GET", "/whoami", accepts, headers, undefined, host);
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

/** Valid requests with headers that other servers interpret. */
export function overrideRequests({ attacker, victim }: FuzzFixtures): fc.Arbitrary<PipelinedInput> {
  const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  const names = [...otherHeaders, ...maliciousNames.filter((name) => token.test(name))];
  const line = fc.tuple(
    fc.constantFrom(...names),
    fc.oneof(
      fc.constantFrom(...otherValues, `/applications/${victim.applicationId}`),
      fc.string({ maxLength: 20 }).map(toHeaderBytes),
    ),
  );
  const lines = fc.array(line, { minLength: 1, maxLength: 5 });
  const key = ["svc-api-key", attacker.management] as const;
  const self = lines.map((headers) =>
    buildRequest(
      "GET",
      "/whoami",
      ({ status, body }) =>
        // A header may set a deadline that has already passed.
        status === 200 ? body.includes(attacker.tenantId) : /deadline|timeout/.test(body),
      [key, ...headers],
    ),
  );
  const forVictim = fc
    .tuple(fc.constantFrom("GET", "POST", "PUT", "DELETE"), lines)
    .map(([verb, headers]) =>
      buildRequest(verb, `/applications/${victim.applicationId}`, ({ status }) => status >= 400, [
        key,
        ...headers,
      ]),
    );
  return fc.oneof(self, forVictim);
}
