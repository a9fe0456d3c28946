import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { Event } from "../../../gen/latchkey/v1/event_service_pb.js";
import type { Api, Key } from "../../support/api/api.js";
import {
  type ApplicationChange,
  type ApplicationState,
  absentApplication,
  accepted,
  changed,
  formatEvent,
  found,
  listed,
  mismatched,
  notFound,
  type ShownApplication,
  unauthenticated,
} from "./application-model.js";
import type { CallOptions, Client, Result } from "./client.js";
import {
  createRecord,
  type HistoryRecord,
  impossible,
  type RecordedCall,
  read,
  type Step,
  write,
} from "./record.js";

const permissions = ["application:read"];

/** The events of changes of an application. */
const kinds = [
  "application.created",
  "application.updated",
  "application.disabled",
  "application.enabled",
  "application.deleted",
  "application.sessions_revoked",
  "key.regenerated",
];

/** An application that several clients use, and the record of their calls. */
export interface LoadedApplication {
  readonly id: string;
  readonly record: HistoryRecord<ApplicationState>;
  /** Its keys in the order of their responses, revoked ones included. */
  readonly keys: readonly string[];
  rename(client: Client, options?: ChangeOptions): Promise<void>;
  regenerate(client: Client, options?: ChangeOptions): Promise<void>;
  disable(client: Client): Promise<void>;
  enable(client: Client): Promise<void>;
  revokeSessions(client: Client): Promise<void>;
  remove(client: Client): Promise<void>;
  get(client: Client, options?: CallOptions): Promise<void>;
  /** Uses a key, the newest one by default. */
  use(client: Client, options?: CallOptions, key?: string): Promise<void>;
  /** Adds the use of a key by a call on another record. */
  addUse(key: string, result: Result<unknown>): void;
  listEvents(client: Client, options?: CallOptions): Promise<void>;
}

interface ChangeOptions {
  readonly isIdempotent?: boolean;
  /** Requires the version of the last response. */
  readonly isConditional?: boolean;
}

/** Creates an application. Returns `undefined` if the response was lost. */
export async function createApplication(
  client: Client,
  root: string,
  type: string,
): Promise<LoadedApplication | undefined> {
  const name = `${type} 0`;
  const created = await client.call(
    `create ${name}`,
    (api, as) => api.createApplication(as(root), { name, type, permissions }),
    { isIdempotent: true },
  );
  const { value, requestId } = created;
  if (!value) {
    return undefined;
  }
  const application = createLoadedApplication(root, value);
  const sets = { name, status: "enabled" } as const;
  const change = { kind: "application.created", requestId, sets, replacesKey: true };
  application.record.add(created.call, [write(changed(change, shown(value)))]);
  return application;
}

const shown = ({ name, status, version, key }: Application): ShownApplication => ({
  name,
  status,
  version,
  key,
});

const isApplication = (value: unknown): value is Application =>
  typeof value === "object" && value !== null && "version" in value;

const describe = (call: RecordedCall, application: Application | undefined): RecordedCall =>
  application
    ? {
        ...call,
        outcome: `${call.outcome}: ${application.name}, ${application.status}, version ${application.version}`,
      }
    : call;

/** The events of an application or a session itself, oldest first. */
export const readEvents = (events: readonly Event[]) =>
  events.map(({ kind, requestId = "" }) => formatEvent(kind, requestId)).reverse();

function createLoadedApplication(root: string, created: Application): LoadedApplication {
  const { id, type } = created;
  const record = createRecord(`${type} application ${id}`, absentApplication);
  const keys = [created.key as string];
  let { version } = created;
  let names = 0;

  type Send = (api: Api, key: Key, request: { id: string; ifMatch?: string }) => Promise<unknown>;

  async function change(
    client: Client,
    text: string,
    effect: Omit<ApplicationChange, "requestId" | "ifMatch">,
    send: Send,
    { isIdempotent = false, isConditional = false }: ChangeOptions = {},
  ): Promise<Application | undefined> {
    const ifMatch = isConditional ? version : undefined;
    const condition = ifMatch === undefined ? {} : { ifMatch };
    const request = isConditional ? `${text} if version ${ifMatch}` : text;
    const called = await client.call(
      request,
      (api, as) => send(api, as(root), { id, ...condition }),
      { isIdempotent },
    );
    const { result, requestId, value, currentVersion = "" } = called;
    const application = isApplication(value) ? value : undefined;
    const applied = { ...effect, ...condition, requestId };
    const steps: Readonly<Record<string, Step<ApplicationState>>> = {
      done: write(changed(applied, application && shown(application))),
      unknown: write(changed(applied)),
      version_mismatch: read(mismatched(ifMatch ?? "", currentVersion)),
      application_not_found: read(notFound),
    };
    record.add(describe(called.call, application), [steps[result] ?? impossible]);
    version = application?.version ?? version;
    return application;
  }

  const setStatus =
    (status: "enabled" | "disabled"): LoadedApplication["enable"] =>
    async (client) => {
      const verb = status === "enabled" ? "enable" : "disable";
      const kind = `application.${status}`;
      await change(client, verb, { kind, sets: { status } }, (api, key, request) =>
        api[`${verb}Application`](key, request),
      );
    };

  return {
    id,
    record,
    keys,

    async rename(client, options) {
      const name = `${type} ${++names}`;
      const effect = { kind: "application.updated", sets: { name } };
      await change(
        client,
        `rename to ${name}`,
        effect,
        (api, key, request) => api.updateApplication(key, { ...request, name, permissions }),
        options,
      );
    },

    async regenerate(client, options) {
      const effect = { kind: "key.regenerated", sets: {}, replacesKey: true };
      const application = await change(
        client,
        "regenerate",
        effect,
        (api, key, request) => api.regenerateApplicationKey(key, request),
        options,
      );
      if (application?.key) {
        keys.push(application.key);
      }
    },

    disable: setStatus("disabled"),
    enable: setStatus("enabled"),

    async revokeSessions(client) {
      const effect = { kind: "application.sessions_revoked", sets: {}, revokesSessions: true };
      await change(client, "revoke-all", effect, (api, key, request) =>
        api.revokeAllSessions(key, request),
      );
    },

    async remove(client) {
      const effect = { kind: "application.deleted", sets: { status: "deleted" } } as const;
      await change(client, "delete", effect, (api, key, request) =>
        api.deleteApplication(key, request),
      );
    },

    async get(client, options) {
      const { result, value, call } = await client.call(
        "get",
        (api, as) => api.getApplication(as(root), { id }),
        options,
      );
      version = value?.version ?? version;
      const missing = result === "application_not_found" ? read(notFound) : impossible;
      record.add(describe(call, value), [value ? read(found(shown(value))) : missing]);
    },

    async use(client, options, key = keys.at(-1) as string) {
      const used = await client.call(
        `use key ${keys.indexOf(key)}`,
        (api, as) => api.whoAmI(as(key)),
        options,
      );
      this.addUse(key, used);
    },

    addUse(key, { result, call }) {
      const isAuthenticated = !["unknown", "unauthenticated"].includes(result);
      const transition = isAuthenticated ? accepted(key) : unauthenticated(key);
      record.add(call, [read(transition)]);
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
