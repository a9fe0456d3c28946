import { expect } from "@jest/globals";
import { generateKey } from "../../../src/auth/keys.js";
import { parseKey } from "../../../src/contract/key-format.js";
import { newId } from "../../../src/lib/uuid.js";
import { type Api, keyOf } from "../../support/api/api.js";

/** Throws if a call is not refused. */
export const expectRefused = (call: Promise<unknown>) =>
  call.then(
    () => {
      throw new Error("the call was not refused");
    },
    () => undefined,
  );

/** Calls every unary method at least once, with success and with errors. */
export async function callEveryMethod(api: Api, root: string): Promise<void> {
  const withIdempotencyKey = (key: string) => ({
    key,
    headers: { "idempotency-key": `${newId(Date.now())}-${Math.random()}` },
  });
  const create = (type: string, permissions: string[]) =>
    api.createApplication(root, { name: type, type, permissions });
  const idempotent = withIdempotencyKey(root);
  const request = { name: "Idempotent", type: "private", permissions: ["token:read"] };
  const created = await api.createApplication(idempotent, request);
  expect(keyOf(await api.createApplication(idempotent, request))).toBe(keyOf(created));
  const manager = await create("management", ["application:read", "event:read"]);
  const backend = await create("private", ["token:read"]);
  const page = await create("public", ["token:read"]);

  const caller = withIdempotencyKey(keyOf(page));
  const { id, sessionKey, nonce } = await api.createSession(caller);
  await api.createSession(caller);
  await api.whoAmI(sessionKey).catch(() => {});
  const grant = { nonce, permissions: ["token:read"] };
  await api.authorizeSession(keyOf(backend), grant);
  await expectRefused(api.authorizeSession(keyOf(backend), grant));
  await expectRefused(api.authorizeSession(keyOf(backend), { ...grant, nonce: sessionKey }));
  await expectRefused(api.getApplicationByKey(nonce));
  await api.whoAmI(sessionKey);
  await api.checkAccess(root, { key: sessionKey, permission: "token:read" });
  await expectRefused(api.checkAccess(root, { key: `${sessionKey}x`, permission: "token:read" }));
  await expectRefused(api.checkAccess(root, { key: nonce, permission: "token:read" }));
  await api.batchCheckAccess(root, {
    checks: [sessionKey, keyOf(backend)].map((key) => ({ key, permission: "token:read" })),
  });
  await api.listSessions(root);
  await api.getSession(root, { id });
  await api.deleteSession(root, { id });
  await expectRefused(api.whoAmI(sessionKey));
  await api.createSession(keyOf(page));
  await api.revokeAllSessions(root, { id: page.id });

  await api.listApplications(root);
  await api.getApplication(root, { id: created.id });
  await api.getApplicationByKey(keyOf(manager));
  const { name, permissions } = created;
  await api.updateApplication(root, { id: created.id, name: `${name}!`, permissions });
  const withGrace = { id: created.id, gracePeriod: { seconds: 60n, nanos: 0 } as never };
  const regenerated = await api.regenerateApplicationKey(withIdempotencyKey(root), withGrace);
  await api.whoAmI(keyOf(created));
  const { data: keys } = await api.listApplicationKeys(root, { id: created.id });
  await api.deleteApplicationKey(root, { id: created.id, keyId: keys.at(-1)?.id ?? "" });
  await api.regenerateApplicationKey(root, { id: created.id });
  await expectRefused(api.whoAmI(keyOf(regenerated)));
  await api.disableApplication(root, { id: backend.id });
  await expectRefused(api.whoAmI(keyOf(backend)));
  await api.enableApplication(root, { id: backend.id });
  await api.deleteApplication(root, { id: backend.id });
  await expectRefused(api.whoAmI(keyOf(backend)));
  await expectRefused(api.createApplication(keyOf(page), request));
  await api.listPermissions(root);
  await api.listEvents(root, { pageSize: 100 } as never);
}

/** Keys that must be refused: random ones, ones with the id of a valid key, and modified valid ones. */
export function invalidKeys(valid: string): string[] {
  const id = parseKey(valid)?.id ?? "";
  const replaceAt = (index: number) =>
    valid.slice(0, index) + (valid[index] === "a" ? "b" : "a") + valid.slice(index + 1);
  return [
    generateKey("prv", newId(Date.now())),
    generateKey("mgt", id),
    generateKey("ses", id),
    generateKey("non", id),
    `${generateKey("prv", id)}0`,
    replaceAt(10),
    replaceAt(45),
    replaceAt(valid.length - 1),
    valid.slice(0, -1),
    `${valid}0`,
    valid.replace(/^lk_.../, "lk_pub"),
    valid.slice("lk_mgt_".length),
    valid.toUpperCase(),
  ];
}
