import { afterAll, beforeAll } from "@jest/globals";
import type { BootstrapResult } from "../../../../src/bootstrap.js";
import type { Environment } from "../../../../src/config/settings.js";
import type { Store } from "../../../../src/store/port/store.js";
import { type Api, keyOf } from "../../../support/api/api.js";
import { createRestApi } from "../../../support/api/rest.js";
import { type HttpResponse, send } from "../../../support/http/http.js";
import { type Engine, startServer, type TestServer } from "../../../support/service/server.js";

export interface AuthZenResponse extends Omit<HttpResponse, "body"> {
  // biome-ignore lint/suspicious/noExplicitAny: the tests check the shape.
  readonly body: any;
}

/** A server with the fixture of the AuthZEN certification scenario: alice may read and write records, bob may read them. */
export interface AuthZenTarget {
  readonly server: TestServer;
  readonly api: Api;
  readonly root: BootstrapResult;
  /** The key of a caller with `access:check`. */
  readonly key: string;
  readonly alice: { readonly id: string; readonly key: string };
  readonly bob: { readonly id: string; readonly key: string };
  /** Sends JSON, or text as it is. */
  post(
    path: string,
    body: unknown,
    headers?: Readonly<Record<string, string | undefined>>,
  ): Promise<AuthZenResponse>;
}

interface TargetOptions {
  readonly engine?: Engine;
  readonly environment?: Environment;
  readonly lastUsedFlushInterval?: number;
  readonly wrapStore?: (store: Store) => Store;
}

export function useAuthZenTarget(options: TargetOptions = {}): AuthZenTarget {
  const target = {} as { -readonly [K in keyof AuthZenTarget]: AuthZenTarget[K] };

  beforeAll(async () => {
    const { engine = "lmdb", ...serverOptions } = options;
    const server = await startServer(engine, serverOptions);
    const root = await server.createTenant();
    const api = createRestApi(server.url);
    const create = async (name: string, permissions: string[]) => {
      // Searches list the newest first.
      server.clock.advance(1);
      const application = await api.createApplication(root.key, {
        name,
        type: "private",
        externalId: name,
        permissions,
      });
      return { id: application.id, key: keyOf(application) };
    };
    const { key } = await create("gateway", ["access:check"]);
    Object.assign(target, {
      server,
      api,
      root,
      key,
      alice: await create("alice", ["record:read", "record:write"]),
      bob: await create("bob", ["record:read"]),
    } satisfies Omit<AuthZenTarget, "post">);
    target.post = async (path, body, headers = {}) => {
      const all = { "svc-api-key": key, "content-type": "application/json", ...headers };
      const response = await send(server, path, {
        method: "POST",
        headers: Object.fromEntries(
          Object.entries(all).filter(([, value]) => value !== undefined),
        ) as Record<string, string>,
        // As bytes: with a string, Node writes the headers in its encoding.
        body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
      });
      return { ...response, body: response.body === "" ? undefined : JSON.parse(response.body) };
    };
  });

  afterAll(() => target.server?.close());

  return target;
}

export const paths = {
  evaluation: "/access/v1/evaluation",
  evaluations: "/access/v1/evaluations",
  searchSubject: "/access/v1/search/subject",
  searchAction: "/access/v1/search/action",
} as const;

export const alice = { type: "user", id: "alice" };
export const bob = { type: "user", id: "bob" };
export const read = { name: "read" };
export const write = { name: "write" };
export const record1 = { type: "record", id: "record-1" };
export const record2 = { type: "record", id: "record-2" };
