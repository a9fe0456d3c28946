import { afterAll, afterEach, beforeAll, beforeEach, expect } from "@jest/globals";
import { send } from "../support/http/http.js";
import { scriptCommand, startChild } from "../support/service/child-process.js";
import type { Engine } from "../support/service/server.js";
import type { FuzzFixtures } from "./fixtures.js";

export interface FuzzedServer extends FuzzFixtures {
  readonly port: number;
}

/**
 * Starts a server for the tests of a file. After each test it must still serve
 * valid requests, have logged no warning, and the victim's data must be unchanged.
 */
export function useFuzzedServer(engine: Engine = "lmdb"): FuzzedServer {
  const server = {} as FuzzedServer;
  const child = startChild(scriptCommand("test/fuzz/server-child.ts", engine));
  let linesRead = 0;
  let before: unknown;

  const get = async (path: string, key: string) => {
    const { status, body } = await send(server, path, { headers: { "svc-api-key": key } });
    expect(status).toBe(200);
    // The use of a key is no change.
    return body.replaceAll(/,"last_used_at":"[^"]*"/g, "");
  };

  /** Reads the victim's data, and the responses to valid requests. */
  const readState = async () => {
    const { attacker, victim } = server;
    return {
      applications: await get("/applications?size=100", victim.rootKey),
      sessions: await get("/sessions?size=100", victim.rootKey),
      keys: await get(`/applications/${victim.applicationId}/keys`, victim.rootKey),
      self: await get("/whoami", attacker.management),
      permissions: await get("/permissions", attacker.public),
    };
  };

  beforeAll(async () => {
    Object.assign(server, await child.line(linesRead++));
  });

  beforeEach(async () => {
    before = await readState();
  });

  afterEach(async () => {
    expect(await readState()).toEqual(before);
    child.write("report\n");
    expect(await child.line(linesRead++)).toEqual({ logs: [], isPolluted: false });
  });

  afterAll(() => child.end());

  return server;
}
