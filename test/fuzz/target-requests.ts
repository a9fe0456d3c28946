import type { DescMessage } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ListApplicationsRequestSchema } from "../../gen/latchkey/v1/application_service_pb.js";
import { ListEventsRequestSchema } from "../../gen/latchkey/v1/event_service_pb.js";
import { ListSessionsRequestSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import { lookalike, maliciousNames, mostlyValid } from "./arbitraries.js";
import type { FuzzFixtures } from "./fixtures.js";
import { buildRequest, type PipelinedInput, type RawResponse, toHeaderBytes } from "./pipeline.js";

/** Paths that the attacker may read. They show no data of the victim. */
const allowedPaths = [
  ...["/whoami", "/applications/key", "/applications", "/sessions", "/permissions", "/events"],
  ...["/healthz", "/readyz", "/openapi.json"],
];

/** Too large to be requested often. */
const largePath = "/openapi.json";

const verbs = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"];

/** Texts to insert into a path. */
const insertions = [
  ...["/", "//", "/./", "/../", "/%2e/", "/%2e%2e/", "/.%2e/", "/%2E%2E%2F", "..%2f", "%2f", "%5c"],
  ...["\\", "\\..\\", ";", ";x=1", ";/", "%3b", "%00", "%0a", "%0d%0a", "%20", "+", "*", "~", "."],
  ...[
    "..;/",
    ".json",
    "%252f",
    "%25",
    "%",
    "%z",
    "%ff",
    "%c0%af",
    "%e2%80%8b",
    "%ef%bc%8f",
    "%u002f",
  ],
  ...["?", "??", "#", "#/healthz", "?#", "&", "@", "@evil.example", ":", ":80", "'", '"', "`", "|"],
  ...["{id}", "$", "$ne", "__proto__", "constructor", "null", "undefined", "[]", "a".repeat(4_000)],
];

const forms: readonly ((path: string) => string)[] = [
  (path) => path,
  (path) => `http://localhost${path}`,
  (path) => `HTTP://EVIL.EXAMPLE.${path}`,
  (path) => `http://a:b@evil.example${path}`,
  (path) => `//evil.example${path}`,
  (path) => path.toUpperCase(),
  (path) => path.replaceAll(/[a-z]/g, (it) => `%${it.charCodeAt(0).toString(16)}`),
  (path) => path.replaceAll(/[a-z]/g, (it) => `%25${it.charCodeAt(0).toString(16)}`),
  (path) => path.replaceAll("/", "%2f"),
  (path) => path.replaceAll("/", "\\"),
];

/**
 * Whether a target is an allowed path, also with encoded letters, a trailing
 * slash or any host, which the server need not check.
 */
function isAllowedPath(target: string): boolean {
  const [path = ""] = target.replace(/^https?:\/\/[^/?#]*/i, "").split("?");
  try {
    return allowedPaths.includes(decodeURIComponent(path.replace(/(.)\/$/, "$1")));
  } catch {
    return false;
  }
}

/** Requests for paths that resemble valid paths. */
export function pathRequests({ attacker, victim }: FuzzFixtures): fc.Arbitrary<PipelinedInput> {
  const victimPaths = [
    `/applications/${victim.applicationId}`,
    `/applications/${victim.applicationId}/keys`,
    `/applications/${victim.applicationId}/keys/${victim.keyId}`,
    `/applications/${victim.applicationId}/regenerate`,
    `/applications/${victim.applicationId}/sessions/revoke-all`,
    `/sessions/${victim.sessionId}`,
  ];
  const rpcs = ["/latchkey.v1.AccessService/WhoAmI", "/grpc.health.v1.Health/Check"];
  const base = fc.constantFrom(
    ...allowedPaths.filter((path) => path !== largePath),
    ...victimPaths,
    ...rpcs,
  );
  const inserted = fc
    .tuple(base, fc.constantFrom(...insertions), fc.double({ min: 0, max: 1, noNaN: true }))
    .map(([path, text, position]) => {
      const at = Math.floor(position * (path.length + 1));
      return path.slice(0, at) + text + path.slice(at);
    });
  const disguised = base.chain(lookalike).map((text) => `/${encodeTarget(text)}`);
  const target = fc.oneof(
    { weight: 6, arbitrary: inserted },
    {
      weight: 2,
      arbitrary: fc.tuple(base, fc.constantFrom(...forms)).map(([it, form]) => form(it)),
    },
    { weight: 1, arbitrary: disguised },
  );
  return fc.tuple(fc.constantFrom(...verbs), target).map(([verb, path]) =>
    buildRequest(verb, path, ({ status }) => status >= 400 || isAllowedPath(path), [
      ["svc-api-key", attacker.management],
      ["content-type", "application/json"],
    ]),
  );
}

/** Encodes a text for use in a request target. */
function encodeTarget(text: string): string {
  return text.isWellFormed()
    ? encodeURIComponent(text).replaceAll("%2F", "/")
    : toHeaderBytes(text).replaceAll(" ", "%20");
}

const values = [
  ...['{"$ne":null}', "[object Object]", "1", "0", "-1", "-0", "1e309", "1.0", "01", "2147483648"],
  ...["9007199254740993", "true", "TRUE", "null", "undefined", "NaN", "", "newest", "public"],
  ...["2030-02-30T00:00:00Z", "2030-01-01T00:00:00Z", "2030-01-01T23:59:60Z", "token:read", "１"],
  ...["\u0000", "\ud800", "\u202e", "a".repeat(1_500), "../..", "%", "%zz", "a&b=c", "a;b=c"],
  ...["(", "[a", "*", "\\", ".*", "^(a+)+$"],
];
const invalidEncodings = ["%", "%zz", "%ff", "%c0%af", "%00", "a%", "'", "[]", "{}"];
/** The query parameters of each list, and some that other servers interpret. */
const parametersByPath: Readonly<Record<string, readonly string[]>> = {
  "/applications": getFieldNames(ListApplicationsRequestSchema),
  "/sessions": getFieldNames(ListSessionsRequestSchema),
  "/events": getFieldNames(ListEventsRequestSchema),
  "/permissions": ["id", "page", "_method"],
  "/whoami": ["svc-api-key", "key", "access_token"],
};
const allParameters = Object.values(parametersByPath).flat();

function getFieldNames({ fields }: DescMessage): string[] {
  return fields.map(({ name }) => name);
}

const brackets = ["[]", "[$ne]", "[$gt]", "[__proto__]", "[constructor][prototype]", ".x", "%00"];

/** List requests with invalid query parameters. */
export function queryRequests({ attacker, victim }: FuzzFixtures): fc.Arbitrary<PipelinedInput> {
  const value = fc.oneof(
    fc
      .constantFrom(...values)
      .map((text) => (text.isWellFormed() ? encodeURIComponent(text) : "%ed%a0%80")),
    fc.constantFrom(...invalidEncodings, victim.applicationId),
  );
  const isSafe = ({ status, body }: RawResponse) =>
    status === 400 || (status === 200 && !body.includes(victim.applicationId));
  return fc
    .constantFrom(...Object.keys(parametersByPath))
    .chain((path) => fc.tuple(fc.constant(path), anyQuery(path, value)))
    .map(([path, query]) =>
      buildRequest("GET", `${path}?${query}`, isSafe, [["svc-api-key", attacker.management]]),
    );
}

/** Mostly parameters of the path, with any values. */
function anyQuery(path: string, value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const name = fc
    .constantFrom(...(parametersByPath[path] ?? []))
    .chain((own) => mostlyValid(own, fc.constantFrom(...allParameters, ...maliciousNames)))
    .map((text) => encodeTarget(text).replaceAll("/", "%2F"));
  const parameter = fc.tuple(
    name,
    mostlyValid("", fc.constantFrom(...brackets)),
    mostlyValid("=", fc.constantFrom("", "==", "%3d")),
    value,
  );
  return fc
    .array(parameter, { minLength: 1, maxLength: 3 })
    .map((all) => all.map((parts) => parts.join("")).join("&"));
}
