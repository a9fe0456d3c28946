import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import type { AccessRule } from "../../../../gen/latchkey/v1/access_rule_pb.js";
import { AccessService } from "../../../../gen/latchkey/v1/access_service_pb.js";
import {
  type Application,
  ApplicationService,
} from "../../../../gen/latchkey/v1/application_service_pb.js";
import {
  type AuthorizeSessionRequest,
  AuthorizeSessionRequestSchema,
  type CreateSessionResponse,
  SessionService,
} from "../../../../gen/latchkey/v1/session_service_pb.js";
import { hour, minute } from "../../../../src/lib/time-units.js";
import { connect } from "../../sign-in/connection.js";
import { serviceNow } from "../../ui/service-clock.js";
import { demoNames } from "./demo-names.js";
import { type Exchange, perform } from "./exchange.js";

export type StepId = "create" | "open" | "early" | "authorize" | "use" | "reuse";

/** The progress of the demo. */
export interface Demo {
  /** Whether the user enters keys of existing applications. */
  readonly usesOwnKeys: boolean;
  readonly applications?: DemoApplications;
  /** When they expire. The same if their creation is repeated, so that none is created twice. */
  readonly expiresAt?: Timestamp;
  readonly grant: Grant;
  readonly session?: DemoSession;
  /** Calls with the key of the backend. */
  readonly backend?: Transport;
  readonly isAuthorized: boolean;
  readonly results: Readonly<Partial<Record<StepId, StepResult>>>;
  /** Set while steps run or the applications are deleted. Differs for each run. */
  readonly running?: symbol | undefined;
  /** Whether the next step follows by itself. */
  readonly isRunningAll?: boolean;
  /** The error of the last run, if there was no response. */
  readonly problem?: unknown;
}

/** A temporary shop and its backend. Their keys are only in memory. */
interface DemoApplications {
  readonly shop?: Application | undefined;
  readonly backend?: Application | undefined;
}

export interface DemoSession extends CreateSessionResponse {
  /** Calls with the key of the session. */
  readonly transport: Transport;
}

/** The grants of the backend to the session. */
export interface Grant {
  readonly permissions: readonly string[];
  readonly rules: readonly AccessRule[];
  /** Minutes until the session expires. Empty to keep its expiry. */
  readonly lifetime: string;
}

export interface StepResult {
  readonly exchanges: readonly Exchange[];
  /** Whether the service responded as it should. */
  readonly isExpected: boolean;
}

/** The input of a step in addition to the progress. */
interface StepInput {
  /** Calls with the signed-in key. */
  readonly own: Transport;
  may(permission: string): boolean;
  /** The key of the step, if the user entered one. The signed-in key without it. */
  readonly key?: string | undefined;
  /** Saves progress within a step, in case a later call of it fails. */
  save(changed: Partial<Demo>): void;
}

type Changed = Partial<Demo>;
type RunStep = (demo: Demo, input: StepInput) => Promise<readonly [StepResult, Changed]>;

export function initialDemo(mayCreate: boolean, may: StepInput["may"]): Demo {
  return {
    usesOwnKeys: !mayCreate,
    grant: {
      permissions: ["token:read", ...["application:read"].filter((name) => mayCreate && may(name))],
      rules: [],
      lifetime: "",
    },
    isAuthorized: false,
    results: {},
  };
}

/** They expire after an hour if nobody deletes them. */
const lifetimeMs = hour;

/** The calls of each step. */
export const runStep: Readonly<Record<StepId, RunStep>> = {
  async create(
    { applications, expiresAt = timestampFromMs(serviceNow() + lifetimeMs) },
    { own, may, save },
  ) {
    const { createApplication } = ApplicationService.method;
    save({ expiresAt });
    const exchanges: Exchange[] = [];
    let shop = applications?.shop;
    if (!shop) {
      const { exchange, message } = await perform(own, createApplication, {
        name: demoNames.shop,
        type: "public",
        permissions: ["token:create"],
        expiresAt,
      });
      exchanges.push(exchange);
      if (!message) {
        return [{ exchanges, isExpected: false }, {}];
      }
      shop = message;
      save({ applications: { shop } });
    }
    const { exchange, message: backend } = await perform(own, createApplication, {
      name: demoNames.backend,
      type: "private",
      permissions: ["token:read", "token:use", ...["application:read"].filter(may)],
      expiresAt,
    });
    exchanges.push(exchange);
    return [{ exchanges, isExpected: backend !== undefined }, { applications: { shop, backend } }];
  },

  async open({ applications }, input) {
    const { exchange, message } = await perform(
      transportFor(applications?.shop?.key, input),
      SessionService.method.createSession,
      {},
    );
    return [
      { exchanges: [exchange], isExpected: message !== undefined },
      message ? { session: { ...message, transport: connect({ key: message.sessionKey }) } } : {},
    ];
  },

  async early({ session }) {
    const { exchange } = await perform(
      transportOf(session),
      ApplicationService.method.getApplicationByKey,
      {},
    );
    return [{ exchanges: [exchange], isExpected: exchange.status === 403 }, {}];
  },

  async authorize(demo, input) {
    const backend = transportFor(demo.applications?.backend?.key, input);
    const { exchange, message } = await perform(
      backend,
      SessionService.method.authorizeSession,
      authorizeRequestOf(demo),
    );
    const isAuthorized = message !== undefined;
    return [
      { exchanges: [exchange], isExpected: isAuthorized },
      isAuthorized ? { backend, isAuthorized } : {},
    ];
  },

  async use({ session, grant }) {
    const transport = transportOf(session);
    const whoAmI = await perform(transport, AccessService.method.whoAmI, {});
    // The call that was refused before.
    const reads = grant.permissions.includes("application:read")
      ? [await perform(transport, ApplicationService.method.getApplicationByKey, {})]
      : [];
    const isExpected =
      whoAmI.message?.authorized === true && reads.every(({ message }) => message !== undefined);
    return [{ exchanges: [whoAmI, ...reads].map(({ exchange }) => exchange), isExpected }, {}];
  },

  async reuse(demo) {
    const { exchange } = await perform(
      demo.backend as Transport,
      SessionService.method.authorizeSession,
      authorizeRequestOf(demo),
    );
    return [{ exchanges: [exchange], isExpected: exchange.status === 409 }, {}];
  },
};

function transportFor(demoKey: string | undefined, { key, own }: StepInput): Transport {
  const used = demoKey ?? key;
  return used === undefined ? own : connect({ key: used });
}

function transportOf(session: DemoSession | undefined): Transport {
  return (session as DemoSession).transport;
}

export function authorizeRequestOf({ session, grant }: Demo): AuthorizeSessionRequest {
  const { permissions, rules, lifetime } = grant;
  return create(AuthorizeSessionRequestSchema, {
    nonce: session?.nonce ?? "",
    permissions: [...permissions],
    rules: [...rules],
    ...(lifetime !== "" && {
      expiresAt: timestampFromMs(serviceNow() + Number(lifetime) * minute),
    }),
  });
}

/** Deletes the demo applications, unless they are already deleted. */
export async function deleteDemoApplications(own: Transport, demo: Demo): Promise<void> {
  const applications = createClient(ApplicationService, own);
  const { shop, backend } = demo.applications ?? {};
  for (const { id } of [shop, backend].filter((created) => created !== undefined)) {
    try {
      await applications.deleteApplication({ id });
    } catch (thrown) {
      if (ConnectError.from(thrown).code !== Code.NotFound) {
        throw thrown;
      }
    }
  }
}
