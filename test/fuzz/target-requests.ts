import type { DescMessage } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ListApplicationsRequestSchema } from "../../gen/latchkey/v1/application_service_pb.js";
import { ListEventsRequestSchema } from "../../gen/latchkey/v1/event_service_pb.js";
import { ListSessionsRequestSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import { hostileNames, lookAlike } from "./hostile.js";
import { mostly } from "./mostly.js";
import type { RawAnswer } from "./pipeline.js";
import { asBytes, type HttpInput, request } from "./request.js";
import type { FuzzWorld } from "./world.js";

/** Paths that any caller of ours may look at; they show nothing of others. */
const ownPaths = [
  ...["/whoami", "/applications/key", "/applications", "/sessions", "/permissions", "/events"],
  ...["/healthz", "/readyz", "/openapi.json"],
];

/** What is long to read, and not asked for on purpose. */
const large = "/openapi.json";

const verbs = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"];

/** What a path may be bent with, in between or around. */
const bends = [
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
 * Whether a request asks for one of our own paths, plainly, if with letters
 * encoded, one slash too many, or the name of a host, which is none of ours to judge.
 */
function isOwnPath(target: string): boolean {
  const [path = ""] = target.replace(/^https?:\/\/[^/?#]*/i, "").split("?");
  try {
    return ownPaths.includes(decodeURIComponent(path.replace(/(.)\/$/, "$1")));
  } catch {
    return false;
  }
}

/** Requests for paths that are nearly those of something. */
export function pathRequests({ attacker, victim }: FuzzWorld): fc.Arbitrary<HttpInput> {
  const theirs = [
    `/applications/${victim.applicationId}`,
    `/applications/${victim.applicationId}/keys`,
    `/applications/${victim.applicationId}/keys/${victim.keyId}`,
    `/applications/${victim.applicationId}/regenerate`,
    `/applications/${victim.applicationId}/sessions/revoke-all`,
    `/sessions/${victim.sessionId}`,
  ];
  const rpcs = ["/latchkey.v1.AccessService/WhoAmI", "/grpc.health.v1.Health/Check"];
  const base = fc.constantFrom(...ownPaths.filter((path) => path !== large), ...theirs, ...rpcs);
  const bent = fc
    .tuple(base, fc.constantFrom(...bends), fc.double({ min: 0, max: 1, noNaN: true }))
    .map(([path, bend, share]) => {
      const at = Math.floor(share * (path.length + 1));
      return path.slice(0, at) + bend + path.slice(at);
    });
  const disguised = base.chain(lookAlike).map((text) => `/${asTarget(text)}`);
  const target = fc.oneof(
    { weight: 6, arbitrary: bent },
    {
      weight: 2,
      arbitrary: fc.tuple(base, fc.constantFrom(...forms)).map(([it, form]) => form(it)),
    },
    { weight: 1, arbitrary: disguised },
  );
  return fc.tuple(fc.constantFrom(...verbs), target).map(([verb, path]) =>
    request(verb, path, ({ status }) => status >= 400 || isOwnPath(path), [
      ["svc-api-key", attacker.management],
      ["content-type", "application/json"],
    ]),
  );
}

/** A text as it may stand in a target, encoded where it must be. */
function asTarget(text: string): string {
  return text.isWellFormed()
    ? encodeURIComponent(text).replaceAll("%2F", "/")
    : asBytes(text).replaceAll(" ", "%20");
}

const values = [
  ...['{"$ne":null}', "[object Object]", "1", "0", "-1", "-0", "1e309", "1.0", "01", "2147483648"],
  ...["9007199254740993", "true", "TRUE", "null", "undefined", "NaN", "", "newest", "public"],
  ...["2030-02-30T00:00:00Z", "2030-01-01T00:00:00Z", "2030-01-01T23:59:60Z", "token:read", "１"],
  ...["\u0000", "\ud800", "\u202e", "a".repeat(1_500), "../..", "%", "%zz", "a&b=c", "a;b=c"],
  ...["(", "[a", "*", "\\", ".*", "^(a+)+$"],
];
const oddlyEncoded = ["%", "%zz", "%ff", "%c0%af", "%00", "a%", "'", "[]", "{}"];
/** Names of the contract itself, of which each list knows some, and of what others would listen to. */
const parametersOf: Readonly<Record<string, readonly string[]>> = {
  "/applications": namesIn(ListApplicationsRequestSchema),
  "/sessions": namesIn(ListSessionsRequestSchema),
  "/events": namesIn(ListEventsRequestSchema),
  "/permissions": ["id", "page", "_method"],
  "/whoami": ["svc-api-key", "key", "access_token"],
};
const allParameters = Object.values(parametersOf).flat();

function namesIn({ fields }: DescMessage): string[] {
  return fields.map(({ name }) => name);
}

const brackets = ["[]", "[$ne]", "[$gt]", "[__proto__]", "[constructor][prototype]", ".x", "%00"];

/** Lists that are asked for with parameters that are none, or not so. */
export function queryRequests({ attacker, victim }: FuzzWorld): fc.Arbitrary<HttpInput> {
  const value = fc.oneof(
    fc
      .constantFrom(...values)
      .map((text) => (text.isWellFormed() ? encodeURIComponent(text) : "%ed%a0%80")),
    fc.constantFrom(...oddlyEncoded, victim.applicationId),
  );
  const isFair = ({ status, body }: RawAnswer) =>
    status === 400 || (status === 200 && !body.includes(victim.applicationId));
  return fc
    .constantFrom(...Object.keys(parametersOf))
    .chain((path) => fc.tuple(fc.constant(path), queryFor(path, value)))
    .map(([path, query]) =>
      request("GET", `${path}?${query}`, isFair, [["svc-api-key", attacker.management]]),
    );
}

/** Parameters of a path, mostly as they are spelled, with any values. */
function queryFor(path: string, value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const name = fc
    .constantFrom(...(parametersOf[path] ?? []))
    .chain((own) => mostly(own, fc.constantFrom(...allParameters, ...hostileNames)))
    .map((text) => asTarget(text).replaceAll("/", "%2F"));
  const parameter = fc.tuple(
    name,
    mostly("", fc.constantFrom(...brackets)),
    mostly("=", fc.constantFrom("", "==", "%3d")),
    value,
  );
  return fc
    .array(parameter, { minLength: 1, maxLength: 3 })
    .map((all) => all.map((parts) => parts.join("")).join("&"));
}
