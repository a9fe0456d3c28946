import type { CreateSessionResponse } from "../../../gen/latchkey/v1/session_service_pb.js";
import { type LoadedApplication, readEvents } from "./application-load.js";
import { listed } from "./application-model.js";
import type { CallOptions, Client } from "./client.js";
import { createRecord, type HistoryRecord, impossible, type RecordedStep } from "./record.js";
import type { SessionState } from "./session-model.js";
import * as model from "./session-model.js";

const permissions = ["application:read"];
const kinds = ["session.authorized", "session.deleted"];

/** A session that several clients use, and the record of their calls. */
export interface LoadedSession {
  readonly record: HistoryRecord<SessionState>;
  authorize(client: Client, options?: CallOptions): Promise<void>;
  remove(client: Client): Promise<void>;
  get(client: Client, options?: CallOptions): Promise<void>;
  use(client: Client, options?: CallOptions): Promise<void>;
  listEvents(client: Client, options?: CallOptions): Promise<void>;
}

/** The applications that open and authorize a session. */
export interface SessionParents {
  readonly opener: LoadedApplication;
  readonly authorizer: LoadedApplication;
}

/** Opens a session. Returns `undefined` if it was refused or the response was lost. */
export async function openSession(
  client: Client,
  root: string,
  parents: SessionParents,
): Promise<LoadedSession | undefined> {
  const key = parents.opener.keys.at(-1) as string;
  const opened = await client.call("open session", (api, as) => api.createSession(as(key)), {
    isIdempotent: true,
  });
  parents.opener.addUse(key, opened);
  if (!opened.value) {
    return undefined;
  }
  const session = createLoadedSession(root, parents, opened.value);
  session.record.add(opened.call, model.opened(key, opened.requestId));
  return session;
}

function createLoadedSession(
  root: string,
  parents: SessionParents,
  { id, nonce, sessionKey }: CreateSessionResponse,
): LoadedSession {
  const record = createRecord(`session ${id}`, model.absentSession, () => [
    ...changesOf(parents, "opener"),
    ...changesOf(parents, "authorizer"),
  ]);

  return {
    record,

    async authorize(client, options) {
      const key = parents.authorizer.keys.at(-1) as string;
      const authorized = await client.call(
        "authorize",
        (api, as) => api.authorizeSession(as(key), { nonce, permissions }),
        options,
      );
      parents.authorizer.addUse(key, authorized);
      const stepsOf = model.authorizeResults[authorized.result];
      record.add(authorized.call, stepsOf?.(key, authorized.requestId) ?? [impossible]);
    },

    async remove(client) {
      const { result, requestId, call } = await client.call("delete", (api, as) =>
        api.deleteSession(as(root), { id }),
      );
      const stepsOf = model.deleteResults[result];
      record.add(call, stepsOf?.(requestId) ?? [impossible]);
    },

    async get(client, options) {
      const { result, value, call } = await client.call(
        "get",
        (api, as) => api.getSession(as(root), { id }),
        options,
      );
      const missing = result === "session_not_found" ? model.notFound() : [impossible];
      const outcome = value ? `${call.outcome}: ${value.state}` : call.outcome;
      const steps = value ? model.found(value.state === "authorized") : missing;
      record.add({ ...call, outcome }, steps);
    },

    async use(client, options) {
      const { result, value, call } = await client.call(
        "use session key",
        (api, as) => api.whoAmI(as(sessionKey)),
        options,
      );
      const refused = result === "unauthenticated" ? model.refused() : [impossible];
      const state = value?.authorized ? "authorized" : "unauthorized";
      const outcome = value ? `${call.outcome}: ${state}` : call.outcome;
      record.add({ ...call, outcome }, value ? model.accepted(value.authorized) : refused);
    },

    async listEvents(client, options) {
      const { value, call } = await client.call(
        "list events",
        (api, as) => api.listEvents(as(root), { target: id, kind: kinds, size: 100 }),
        options,
      );
      const events = readEvents(value?.data ?? []);
      const outcome = `${call.outcome}: ${events.join(", ")}`;
      record.add({ ...call, outcome }, [value ? listed(events) : impossible]);
    },
  };
}

/** The changes of an application, and the lists that show their order, as steps of its sessions. */
function changesOf(
  parents: SessionParents,
  name: keyof SessionParents,
): RecordedStep<SessionState>[] {
  return parents[name].record
    .steps()
    .filter(({ isRead, isReachableFrom }) => !isRead || isReachableFrom)
    .map((step) => ({
      ...model.on(name, step),
      startedAt: step.startedAt,
      endedAt: step.endedAt,
      call: { ...step.call, request: `${name}: ${step.call.request}` },
    }));
}
