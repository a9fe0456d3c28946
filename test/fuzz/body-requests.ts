import fc from "fast-check";
import { listJsonPaths, replaceAtPath } from "../support/json-paths.js";
import { anyJson, maliciousNames } from "./arbitraries.js";
import type { FuzzFixtures } from "./fixtures.js";
import { buildRequest, type PipelinedInput, type RawResponse } from "./pipeline.js";

interface Operation {
  readonly verb: string;
  readonly path: string;
  readonly rpc: string;
  readonly key: string;
  /** A valid body with every field. */
  readonly body: object;
  /** Fields that are bound to the path over REST. */
  readonly bound?: object;
  accepts(response: RawResponse): boolean;
}

const permissions = ["token:read"];
const rule = {
  description: "cards",
  priority: 1,
  transform: "mask",
  permissions,
  container: "/pci/",
};
const condition = { attribute: "container", operator: "equals", value: "/pci/" };
const { container: _container, ...sessionRule } = { ...rule, conditions: [condition] };
const expires_at = "2100-01-01T00:00:00Z";

/** Requests for the victim's data always fail. */
const isRefused = ({ status, body }: RawResponse) =>
  status >= 400 || /\r\ngrpc-status: [1-9]/.test(body);
const isAny = () => true;
const isNotAllowed = ({ body }: RawResponse) => !/"allowed":\s*true/.test(body);

function getOperations({ attacker, victim }: FuzzFixtures): Operation[] {
  const { applicationId: id } = victim;
  const check = {
    key: victim.key,
    permission: "token:read",
    token: { id: "card-1", container: "/pci/" },
    origin: "https://shop.example.com",
    address: "203.0.113.7",
  };
  const grants = { permissions, rules: [rule] };
  const restrictions = { allowed_origins: ["https://a.example"], allowed_cidrs: ["10.0.0.0/8"] };
  const applications = "ApplicationService";
  const byManager = { key: attacker.management };
  return [
    {
      verb: "POST",
      path: "/applications",
      rpc: `${applications}/CreateApplication`,
      body: { name: "a", type: "public", ...grants, ...restrictions, expires_at },
      key: attacker.creator,
      accepts: isAny,
    },
    {
      verb: "PUT",
      path: `/applications/${id}`,
      rpc: `${applications}/UpdateApplication`,
      body: { name: "a", ...grants, ...restrictions },
      bound: { id },
      ...byManager,
      accepts: isRefused,
    },
    {
      verb: "POST",
      path: `/applications/${id}/regenerate`,
      rpc: `${applications}/RegenerateApplicationKey`,
      bound: { id },
      ...byManager,
      body: { grace_period: "3600s" },
      accepts: isRefused,
    },
    {
      verb: "POST",
      path: `/applications/${id}/disable`,
      bound: { id },
      ...byManager,
      rpc: `${applications}/DisableApplication`,
      body: {},
      accepts: isRefused,
    },
    {
      verb: "POST",
      path: "/sessions/authorize",
      rpc: "SessionService/AuthorizeSession",
      body: { nonce: victim.nonce, permissions, rules: [sessionRule], expires_at },
      key: attacker.private,
      accepts: isRefused,
    },
    {
      verb: "POST",
      path: "/access/check",
      rpc: "AccessService/CheckAccess",
      body: check,
      key: attacker.session,
      accepts: isNotAllowed,
    },
    {
      verb: "POST",
      path: "/access/check-batch",
      rpc: "AccessService/BatchCheckAccess",
      body: { checks: [check, check] },
      key: attacker.private,
      accepts: isNotAllowed,
    },
  ];
}

/** Marks the part of a body to replace. No valid body contains it. */
const placeholder = "\u0001placeholder\u0001";

/** A body with one changed value, or one additional or duplicate member. */
function mutateBody(body: object): fc.Arbitrary<string> {
  const places = listJsonPaths(body).map((path) => {
    const value = path.reduce<unknown>((inner, at) => (inner as never)[at], body);
    const text = JSON.stringify(replaceAtPath(body, path, placeholder));
    return { text, value, json: JSON.stringify(value) };
  });
  const objects = places.filter(({ json }) => json.startsWith("{"));
  const name = fc.oneof(
    fc.constantFrom(...maliciousNames),
    fc.constantFrom(...Object.keys(body), "name"),
  );
  const fill = (text: string, json: string) => text.split(JSON.stringify(placeholder)).join(json);
  const withReplacedValue = fc
    .constantFrom(...places)
    .chain(({ text, value }) =>
      anyJson(typeof value === "string" ? value : "x").map((json) => fill(text, json)),
    );
  const withExtraMember = fc
    .tuple(fc.constantFrom(...objects), name, anyJson("x"), fc.boolean())
    .map(([{ text, json }, member, value, isFirst]) => {
      const inner = json.slice(1, -1);
      const extra = `${JSON.stringify(member)}:${value}`;
      const parts = (isFirst ? [extra, inner] : [inner, extra]).filter((part) => part !== "");
      return fill(text, `{${parts.join(",")}}`);
    });
  return fc.oneof(
    { weight: 3, arbitrary: withReplacedValue },
    { weight: 2, arbitrary: withExtraMember },
  );
}

const contentTypes = [
  ...["application/json", "application/json; charset=utf-8", "Application/JSON"],
  ...["application/json;charset=utf-16", "text/plain", "application/x-www-form-urlencoded"],
  ...["multipart/form-data; boundary=a", "application/json, text/plain", "application/jsonx"],
  ...["application/proto", "application/connect+json", "application/grpc-web", ";", "*/*"],
];
const contentEncodings = ["identity", "gzip", "br", "deflate", "gzip, gzip", "x", "IDENTITY", ""];

const anyContent = fc.record({
  type: fc.oneof(
    { weight: 12, arbitrary: fc.constant("application/json") },
    { weight: 1, arbitrary: fc.constantFrom(...contentTypes) },
  ),
  encoding: fc.oneof(
    { weight: 15, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom(...contentEncodings) },
  ),
});

/** Requests with invalid bodies or content headers, over REST and Connect. */
export function bodyRequests(fixtures: FuzzFixtures): fc.Arbitrary<PipelinedInput> {
  const requests = getOperations(fixtures).map((operation) => {
    const { verb, path, rpc, key, body, bound = {}, accepts } = operation;
    const overRest = mutateBody(body).map((text) => ({ verb, target: path, text }));
    const overRpc = mutateBody({ ...bound, ...body }).map((text) => ({
      verb: "POST",
      target: `/latchkey.v1.${rpc}`,
      text,
    }));
    return fc
      .tuple(fc.oneof(overRest, overRpc), anyContent)
      .map(([{ verb, target, text }, { type, encoding }]) =>
        buildRequest(
          ...([verb, target, accepts] as const),
          [
            ["svc-api-key", key],
            ["content-type", type],
            ...(encoding === undefined ? [] : [["content-encoding", encoding] as const]),
          ],
          Buffer.from(text),
        ),
      );
  });
  return fc.oneof(...requests);
}
