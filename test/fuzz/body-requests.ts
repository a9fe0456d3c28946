import fc from "fast-check";
import { listJsonPaths, replaceAtPath } from "../support/json-paths.js";
import { anyJson, hostileNames } from "./hostile.js";
import type { RawAnswer } from "./pipeline.js";
import { type HttpInput, request } from "./request.js";
import type { FuzzWorld } from "./world.js";

interface Operation {
  readonly verb: string;
  readonly path: string;
  readonly rpc: string;
  readonly key: string;
  /** A good body, with every field. */
  readonly body: object;
  /** What only the path tells over REST. */
  readonly bound?: object;
  accepts(answer: RawAnswer): boolean;
}

const permissions = ["token:read"];
const rule = {
  ...{ description: "cards", priority: 1, transform: "mask", permissions },
  container: "/pci/",
};
const condition = { attribute: "container", operator: "equals", value: "/pci/" };
const { container: _container, ...sessionRule } = { ...rule, conditions: [condition] };
const expires_at = "2100-01-01T00:00:00Z";

/** Nothing that is aimed at the victim is ever done. */
const isRefused = ({ status, body }: RawAnswer) =>
  status >= 400 || /\r\ngrpc-status: [1-9]/.test(body);
const isAnswered = () => true;
const isNotAllowed = ({ body }: RawAnswer) => !/"allowed":\s*true/.test(body);

function operationsIn({ attacker, victim }: FuzzWorld): Operation[] {
  const { applicationId: id } = victim;
  const check = {
    key: victim.key,
    permission: "token:read",
    token: { id: "card-1", container: "/pci/" },
    origin: "https://shop.example.com",
    address: "203.0.113.7",
  };
  const grants = { permissions, rules: [rule] };
  const places = { allowed_origins: ["https://a.example"], allowed_cidrs: ["10.0.0.0/8"] };
  const applications = "ApplicationService";
  const byRoot = { key: attacker.management };
  return [
    {
      ...{ verb: "POST", path: "/applications", rpc: `${applications}/CreateApplication` },
      body: { name: "a", type: "public", ...grants, ...places, expires_at },
      key: attacker.creator,
      accepts: isAnswered,
    },
    {
      ...{ verb: "PUT", path: `/applications/${id}`, rpc: `${applications}/UpdateApplication` },
      ...{ body: { name: "a", ...grants, ...places }, bound: { id }, ...byRoot },
      accepts: isRefused,
    },
    {
      ...{ verb: "POST", path: `/applications/${id}/regenerate` },
      ...{ rpc: `${applications}/RegenerateApplicationKey`, bound: { id }, ...byRoot },
      body: { grace_period: "3600s" },
      accepts: isRefused,
    },
    {
      ...{ verb: "POST", path: `/applications/${id}/disable`, bound: { id }, ...byRoot },
      ...{ rpc: `${applications}/DisableApplication`, body: {} },
      accepts: isRefused,
    },
    {
      ...{ verb: "POST", path: "/sessions/authorize", rpc: "SessionService/AuthorizeSession" },
      body: { nonce: victim.nonce, permissions, rules: [sessionRule], expires_at },
      key: attacker.private,
      accepts: isRefused,
    },
    {
      ...{ verb: "POST", path: "/access/check", rpc: "AccessService/CheckAccess" },
      ...{ body: check, key: attacker.session },
      accepts: isNotAllowed,
    },
    {
      ...{ verb: "POST", path: "/access/check-batch", rpc: "AccessService/BatchCheckAccess" },
      ...{ body: { checks: [check, check] }, key: attacker.private },
      accepts: isNotAllowed,
    },
  ];
}

/** A text that no body has, for the place in it that is to be something else. */
const hole = "\u0001hole\u0001";

/** A body with another value, another member, or a member twice, in one of its places. */
function spoiled(body: object): fc.Arbitrary<string> {
  const places = listJsonPaths(body).map((path) => {
    const value = path.reduce<unknown>((inner, at) => (inner as never)[at], body);
    const text = JSON.stringify(replaceAtPath(body, path, hole));
    return { text, value, json: JSON.stringify(value) };
  });
  const objects = places.filter(({ json }) => json.startsWith("{"));
  const name = fc.oneof(
    fc.constantFrom(...hostileNames),
    fc.constantFrom(...Object.keys(body), "name"),
  );
  const filled = (text: string, json: string) => text.split(JSON.stringify(hole)).join(json);
  const replacedOnes = fc
    .constantFrom(...places)
    .chain(({ text, value }) =>
      anyJson(typeof value === "string" ? value : "x").map((json) => filled(text, json)),
    );
  const extendedOnes = fc
    .tuple(fc.constantFrom(...objects), name, anyJson("x"), fc.boolean())
    .map(([{ text, json }, member, value, isFirst]) => {
      const inner = json.slice(1, -1);
      const more = `${JSON.stringify(member)}:${value}`;
      const parts = (isFirst ? [more, inner] : [inner, more]).filter((part) => part !== "");
      return filled(text, `{${parts.join(",")}}`);
    });
  return fc.oneof({ weight: 3, arbitrary: replacedOnes }, { weight: 2, arbitrary: extendedOnes });
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

/** Requests with bodies, over REST and Connect, of which something is not as it should be. */
export function bodyRequests(world: FuzzWorld): fc.Arbitrary<HttpInput> {
  const families = operationsIn(world).map((operation) => {
    const { verb, path, rpc, key, body, bound = {}, accepts } = operation;
    const overRest = spoiled(body).map((text) => ({ verb, target: path, text }));
    const overRpc = spoiled({ ...bound, ...body }).map((text) => ({
      ...{ verb: "POST", target: `/latchkey.v1.${rpc}`, text },
    }));
    return fc
      .tuple(fc.oneof(overRest, overRpc), anyContent)
      .map(([{ verb, target, text }, { type, encoding }]) =>
        request(
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
  return fc.oneof(...families);
}
