import { afterAll, afterEach, beforeAll, beforeEach, expect } from "@jest/globals";
import { send } from "../support/http/http.js";
import { scriptCommand, startChild } from "../support/service/child-process.js";
import type { Engine } from "../support/service/server.js";
import type { FuzzWorld } from "./world.js";

/** A server that is treated badly, and where it is. */
export interface FuzzedServer extends FuzzWorld {
  readonly port: number;
}

/**
 * Starts a server for the tests of a file, and sees after each of them that it
 * is still there, serves as before, complained of nothing, and that nothing of
 * the victim was changed.
 */
export function useFuzzedServer(engine: Engine = "lmdb"): FuzzedServer {
  const server = {} as FuzzedServer;
  const child = startChild(scriptCommand("test/fuzz/server-child.ts", engine));
  let told = 0;
  let before: unknown;

  const ask = async (path: string, key: string) => {
    const { status, body } = await send(server, path, { headers: { "svc-api-key": key } });
    expect(status).toBe(200);
    // To use a key is no change.
    return body.replaceAll(/,"last_used_at":"[^"]*"/g, "");
  };

  /** All that the victim has, and what good requests are answered. */
  const state = async () => {
    const { attacker, victim } = server;
    return {
      applications: await ask("/applications?size=100", victim.rootKey),
      sessions: await ask("/sessions?size=100", victim.rootKey),
      keys: await ask(`/applications/${victim.applicationId}/keys`, victim.rootKey),
      self: await ask("/whoami", attacker.management),
      permissions: await ask("/permissions", attacker.public),
    };
  };

  beforeAll(async () => {
    Object.assign(server, await child.line(told++));
  });

  beforeEach(async () => {
    before = await state();
  });

  afterEach(async () => {
    expect(await state()).toEqual(before);
    child.write("report\n");
    expect(await child.line(told++)).toEqual({ complaints: [], isPolluted: false });
  });

  afterAll(() => child.end());

  return server;
}
