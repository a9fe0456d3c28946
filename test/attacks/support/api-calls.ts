import { expect } from "@jest/globals";
import { makeKey } from "../../../src/auth/keys.js";
import { parseKey } from "../../../src/contract/key-format.js";
import { newId } from "../../../src/lib/uuid.js";
import { type Api, keyOf } from "../../support/api/api.js";

export const refused = (call: Promise<unknown>) =>
  call.then(
    () => {
      throw new Error("it was not refused");
    },
    () => undefined,
  );

/** Does all there is to do. */
export async function callEveryMethod(api: Api, root: string): Promise<void> {
  const again = (key: string) => ({
    key,
    headers: { "idempotency-key": `${newId(Date.now())}-${Math.random()}` },
  });
  const make = (type: string, permissions: string[]) =>
    api.createApplication(root, { name: type, type, permissions });
  const once = again(root);
  const request = { name: "Once", type: "private", permissions: ["token:read"] };
  const made = await api.createApplication(once, request);
  expect(keyOf(await api.createApplication(once, request))).toBe(keyOf(made));
  const manager = await make("management", ["application:read", "event:read"]);
  const backend = await make("private", ["token:read"]);
  const page = await make("public", ["token:read"]);

  const first = again(keyOf(page));
  const { id, sessionKey, nonce } = await api.createSession(first);
  await api.createSession(first);
  await api.whoAmI(sessionKey).catch(() => {});
  const grant = { nonce, permissions: ["token:read"] };
  await api.authorizeSession(keyOf(backend), grant);
  await refused(api.authorizeSession(keyOf(backend), grant));
  await refused(api.authorizeSession(keyOf(backend), { ...grant, nonce: sessionKey }));
  await refused(api.getApplicationByKey(nonce));
  await api.whoAmI(sessionKey);
  await api.checkAccess(root, { key: sessionKey, permission: "token:read" });
  await refused(api.checkAccess(root, { key: `${sessionKey}x`, permission: "token:read" }));
  await refused(api.checkAccess(root, { key: nonce, permission: "token:read" }));
  await api.batchCheckAccess(root, {
    checks: [sessionKey, keyOf(backend)].map((key) => ({ key, permission: "token:read" })),
  });
  await api.listSessions(root);
  await api.getSession(root, { id });
  await api.deleteSession(root, { id });
  await refused(api.whoAmI(sessionKey));
  await api.createSession(keyOf(page));
  await api.revokeAllSessions(root, { id: page.id });

  await api.listApplications(root);
  await api.getApplication(root, { id: made.id });
  await api.getApplicationByKey(keyOf(manager));
  const { name, permissions } = made;
  await api.updateApplication(root, { id: made.id, name: `${name}!`, permissions });
  const withGrace = { id: made.id, gracePeriod: { seconds: 60n, nanos: 0 } as never };
  const renewed = await api.regenerateApplicationKey(again(root), withGrace);
  await api.whoAmI(keyOf(made));
  const { data: keys } = await api.listApplicationKeys(root, { id: made.id });
  await api.deleteApplicationKey(root, { id: made.id, keyId: keys.at(-1)?.id ?? "" });
  await api.regenerateApplicationKey(root, { id: made.id });
  await refused(api.whoAmI(keyOf(renewed)));
  await api.disableApplication(root, { id: backend.id });
  await refused(api.whoAmI(keyOf(backend)));
  await api.enableApplication(root, { id: backend.id });
  await api.deleteApplication(root, { id: backend.id });
  await refused(api.whoAmI(keyOf(backend)));
  await refused(api.createApplication(keyOf(page), request));
  await api.listPermissions(root);
  await api.listEvents(root, { pageSize: 100 } as never);
}

/** Keys that work for nobody: made up, of another's id, or one that is good but for a letter. */
export function invalidKeys(good: string): string[] {
  const id = parseKey(good)?.id ?? "";
  const withAnother = (place: number) =>
    good.slice(0, place) + (good[place] === "a" ? "b" : "a") + good.slice(place + 1);
  return [
    makeKey("prv", newId(Date.now())),
    makeKey("mgt", id),
    makeKey("ses", id),
    makeKey("non", id),
    `${makeKey("prv", id)}0`,
    withAnother(10),
    withAnother(45),
    withAnother(good.length - 1),
    good.slice(0, -1),
    `${good}0`,
    good.replace(/^lk_.../, "lk_pub"),
    good.slice("lk_mgt_".length),
    good.toUpperCase(),
  ];
}
