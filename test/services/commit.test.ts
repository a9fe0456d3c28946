import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import type { Caller } from "../../src/auth/caller.js";
import { permissionDenied } from "../../src/errors.js";
import { type Commit, createCommit } from "../../src/services/commit.js";
import { decide } from "../../src/store/core/decide.js";
import type { LiveRecords, MakeChange, RecordKind } from "../../src/store/port/change.js";
import { CallerChanged } from "../../src/store/port/errors.js";
import type { NewEvent } from "../../src/store/port/events.js";
import {
  type ApplicationRecord,
  newApplication,
  newSession,
  type SessionWithApplication,
} from "../../src/store/port/records.js";
import { anApplication, aSession } from "../contract/store/fixtures.js";
import { contextOf } from "../support/services/decisions.js";

const now = Date.UTC(2030, 0);
const tenantId = randomUUID();
const method = ApplicationService.method.updateApplication;

const caller: Caller & { readonly application: ApplicationRecord } = (() => {
  const application = newApplication(
    anApplication({ tenantId, type: "private", permissions: ["application:update"] }),
    now,
  );
  return { application, key: application.keys[0] };
})();
const target = newApplication(anApplication({ tenantId }), now);

/** Commits on these records, without writing anything. Returns the result and the event. */
function createTestCommit(records: readonly LiveRecords[RecordKind][]) {
  const idOf = (live: LiveRecords[RecordKind]) => ("session" in live ? live.session : live).id;
  let event: NewEvent | undefined;
  const change: MakeChange = async (change) => {
    const find = ({ id }: { id: string }) => records.find((live) => idOf(live) === id) as never;
    const decided = decide(change, find, now);
    event = decided.event;
    return decided.result;
  };
  const commit: Commit = createCommit({ store: { change }, addressOf: () => "192.0.2.1" });
  return { commit, getEvent: () => event };
}

const rename = {
  target: { kind: "application", id: target.id },
  decide: ({ target }: { target: ApplicationRecord | undefined }) => ({
    ...(target && {
      put: { ...target, name: "renamed" },
      event: { kind: "application.updated", target: { applicationId: target.id } },
    }),
    reply: { isFound: target !== undefined },
  }),
} as const;

describe("a change of a handler", () => {
  it("has an event with what is known of the call", async () => {
    const { commit, getEvent } = createTestCommit([target, caller.application]);
    await commit(contextOf(method, caller), rename);
    expect(getEvent()).toMatchObject({
      tenantId,
      kind: "application.updated",
      outcome: "success",
      actor: { applicationId: caller.application.id, keyId: caller.key?.id },
      method: "latchkey.v1.ApplicationService/UpdateApplication",
      requestId: "request",
      address: "192.0.2.1",
    });
  });

  it("does not see a target of another tenant", async () => {
    const foreign = { ...target, tenantId: randomUUID() };
    const { commit } = createTestCommit([foreign, caller.application]);
    const reply = await commit(contextOf(method, caller), rename);
    expect(reply).toEqual({ isFound: false });
  });

  it("names its target if it is denied", async () => {
    const { commit } = createTestCommit([target, caller.application]);
    const denying = {
      ...rename,
      decide: () => {
        throw permissionDenied("no");
      },
    };
    await expect(commit(contextOf(method, caller), denying)).rejects.toMatchObject({
      target: { applicationId: target.id, name: target.name },
    });
  });
});

describe("the authority of a caller", () => {
  const { application } = caller;
  const changed = (fields: Partial<ApplicationRecord>) => ({
    ...application,
    version: application.version + 1,
    ...fields,
  });

  const losses: Record<string, ApplicationRecord | undefined> = {
    "it is deleted": undefined,
    "it is disabled": changed({ disabled: true }),
    "it loses a permission": changed({ permissions: [] }),
    "its expiry changes": changed({ expiresAt: now + 1_000 }),
    "its networks change": changed({ allowedCidrs: ["192.0.2.0/24"] }),
    "its key is replaced": changed({ keys: [] }),
    "its key expires": changed({
      keys: application.keys.map((key) => ({ ...key, expiresAt: now })),
    }),
  };

  it.each(Object.entries(losses))("is refused if %s before the change", async (_, current) => {
    const { commit } = createTestCommit(current ? [target, current] : [target]);
    await expect(commit(contextOf(method, caller), rename)).rejects.toBeInstanceOf(CallerChanged);
  });

  it("is kept if the caller changes otherwise", async () => {
    const current = changed({ name: "renamed", metadata: { team: "payments" } });
    const { commit } = createTestCommit([target, current]);
    await expect(commit(contextOf(method, caller), rename)).resolves.toEqual({ isFound: true });
  });

  it("ends with the session or with its authorizer", async () => {
    const session = {
      ...newSession(aSession(application), 0, now),
      permissions: ["application:update"],
      authorizedAt: now,
      authorizedBy: target.id,
    };
    const authorized = { application, session, authorizer: target };
    const commitFor = (live: SessionWithApplication | undefined) =>
      createTestCommit(live ? [target, live] : [target]).commit(
        contextOf(method, authorized),
        rename,
      );
    await expect(commitFor(authorized)).resolves.toEqual({ isFound: true });
    const weaker = { ...target, version: target.version + 1, permissions: ["token:read"] };
    for (const live of [
      undefined,
      { application, session },
      { ...authorized, authorizer: weaker },
      { ...authorized, session: { ...session, permissions: [] } },
    ]) {
      await expect(commitFor(live)).rejects.toBeInstanceOf(CallerChanged);
    }
  });
});
