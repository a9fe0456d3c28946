import { forEachConcurrently } from "../../support/concurrency.js";
import type { CallRecorder, Endpoint } from "../support/call-recorder.js";
import { createApplication, type LoadedApplication } from "./application-load.js";
import { type CallOptions, type Client, createClient, createEndpoints } from "./client.js";
import type { CheckedRecord } from "./record.js";
import { type LoadedSession, openSession } from "./session-load.js";

interface LoadOptions {
  readonly recorder: CallRecorder;
  readonly endpoints: readonly Endpoint[];
  readonly root: string;
  readonly random: () => number;
}

interface HistoryLoad {
  /** All records so far. */
  readonly records: readonly CheckedRecord[];
  /** Waits for the pending calls, then reads every record from every endpoint. */
  stop(): Promise<void>;
  /** Ends all calls, also those that wait for endpoints that do not respond. */
  close(): void;
}

const clientCount = 6;
/** How many applications, and pairs of applications with sessions, are in use at a time. */
const slotsPerKind = 2;
/** How often each is used before a new one takes its place. More calls have more possible orders. */
const uses = 40;
const usesAfterDelete = 6;
const maxSessions = 8;

/** What several clients use at the same time. */
interface Target {
  readonly records: readonly CheckedRecord[];
  /** Makes some calls. It will be called `left` times more. */
  act(client: Client, left: number): Promise<void>;
  readAll(client: Client, options: CallOptions): Promise<void>;
}

type Action = () => Promise<void>;
type WeightedActions = readonly (readonly [weight: number, action: Action])[];

/** Starts clients that change and read the same records at the same time, over all endpoints. */
export function startHistoryLoad({ recorder, endpoints, root, random }: LoadOptions): HistoryLoad {
  const pool = createEndpoints(recorder, endpoints, root, random);
  const clients = Array.from({ length: clientCount }, (_, index) =>
    createClient(`c${index + 1}`, { recorder, endpoints: pool }),
  );
  const targets: Target[] = [];
  const records: CheckedRecord[] = [];
  let isStopped = false;

  function choose(actions: WeightedActions): Promise<void> {
    let roll = random() * actions.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, action] of actions) {
      roll -= weight;
      if (roll < 0) {
        return action();
      }
    }
    return Promise.resolve();
  }

  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;

  /** Reads what a change may have affected. */
  const readApplication = (application: LoadedApplication, client: Client) =>
    choose([
      [3, () => application.get(client)],
      [2, () => application.use(client)],
      [2, () => application.use(client, {}, pick(application.keys))],
      [1, () => application.listEvents(client)],
    ]);

  function changeStatus(application: LoadedApplication, client: Client): Promise<void> {
    return choose([
      [3, () => application.disable(client)],
      [6, () => application.enable(client)],
      [1, () => application.revokeSessions(client)],
      [1, () => application.regenerate(client, { isIdempotent: true })],
    ]);
  }

  function createApplicationTarget(application: LoadedApplication): Target {
    return {
      records: [application.record],
      async act(client, left) {
        if (left === usesAfterDelete) {
          await application.remove(client);
        }
        await choose([
          [6, () => application.rename(client)],
          [5, () => application.rename(client, { isConditional: true })],
          [3, () => application.rename(client, { isIdempotent: true })],
          [3, () => application.regenerate(client)],
          [2, () => application.regenerate(client, { isConditional: true, isIdempotent: true })],
          [3, () => changeStatus(application, client)],
          [2, () => readApplication(application, client)],
        ]);
        await readApplication(application, client);
      },
      async readAll(client, options) {
        await application.get(client, options);
        await application.use(client, options);
        await application.listEvents(client, options);
      },
    };
  }

  function createSessionTarget(opener: LoadedApplication, authorizer: LoadedApplication): Target {
    const sessions: LoadedSession[] = [];
    const parents = { opener, authorizer };
    const applications = [opener, authorizer];

    async function open(client: Client): Promise<void> {
      const session = await openSession(client, root, parents);
      if (session) {
        sessions.push(session);
        records.push(session.record);
      }
    }

    /** Several clients use the nonce at the same time, and now and then one deletes the session. */
    async function race(session: LoadedSession, client: Client): Promise<void> {
      await Promise.all([
        session.authorize(client),
        session.authorize(pick(clients)),
        random() < 0.2 ? session.remove(pick(clients)) : session.authorize(pick(clients)),
      ]);
    }

    async function useSession(session: LoadedSession, client: Client): Promise<void> {
      await choose([
        [6, () => race(session, client)],
        [1, () => session.remove(client)],
        [3, () => changeStatus(pick(applications), client)],
      ]);
      await choose([
        [2, () => session.get(client)],
        [4, () => session.use(client)],
        [1, () => session.listEvents(client)],
        [1, () => readApplication(pick(applications), client)],
      ]);
    }

    return {
      records: applications.map(({ record }) => record),
      async act(client, left) {
        if (left === usesAfterDelete) {
          await pick(applications).remove(client);
        }
        if (sessions.length === 0 || (sessions.length < maxSessions && random() < 0.3)) {
          await open(client);
        }
        const session = sessions.at(-1 - Math.floor(random() * 2)) ?? sessions[0];
        await (session ? useSession(session, client) : changeStatus(pick(applications), client));
      },
      async readAll(client, options) {
        for (const record of [...applications, ...sessions]) {
          await record.get(client, options);
          await record.use(client, options);
          await record.listEvents(client, options);
        }
      },
    };
  }

  async function createTarget(client: Client, slot: number): Promise<Target | undefined> {
    const create = (type: string) => createApplication(client, root, type);
    if (slot < slotsPerKind) {
      const application = await create("private");
      return application && createApplicationTarget(application);
    }
    const [opener, authorizer] = [await create("public"), await create("private")];
    return opener && authorizer && createSessionTarget(opener, authorizer);
  }

  const slots = Array.from({ length: 2 * slotsPerKind }, () => ({
    left: 0,
    current: Promise.resolve<Target | undefined>(undefined),
  }));

  async function work(client: Client): Promise<void> {
    while (!isStopped) {
      const index = Math.floor(random() * slots.length);
      const slot = slots[index] as (typeof slots)[number];
      if (slot.left-- <= 0) {
        slot.left = uses;
        slot.current = createTarget(client, index);
        const created = await slot.current;
        if (created) {
          targets.push(created);
          records.push(...created.records);
        }
      }
      const target = await slot.current;
      await target?.act(client, slot.left);
    }
  }

  const working = Promise.all(clients.map(work));
  working.catch(() => {});
  return {
    records,
    async stop() {
      isStopped = true;
      await working;
      const reads = targets.flatMap((target) =>
        endpoints.map((endpoint) => ({ target, endpoint })),
      );
      await forEachConcurrently(clientCount, reads, ({ target, endpoint }, worker) =>
        target.readAll(clients[worker] as Client, { endpoint, isRepeated: true }),
      );
    },

    close() {
      isStopped = true;
      pool.close();
    },
  };
}
