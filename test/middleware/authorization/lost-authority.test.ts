import { type ClientHttp2Session, connect } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { isReplayable } from "../../../src/contract/methods.js";
import { newId } from "../../../src/lib/uuid.js";
import { type Binding, readBindings } from "../../../src/transport/rest/bindings.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { engines, startServer, type TestServer } from "../../support/service/server.js";
import { type CallOptions, type CallResult, callGrpc, callRest } from "./call.js";
import { createChangeGate, type Loss, losses } from "./lost-authority.js";
import { sampleOf, type Target } from "./samples.js";
import { createMatrixTenant, type MatrixTenant } from "./tenant.js";

const changeMethods = [ApplicationService, SessionService]
  .flatMap((service): DescMethod[] => service.methods)
  .filter(({ idempotency }) => idempotency !== Level.NO_SIDE_EFFECTS);

type CallMethod = (target: Target, key: string, options?: CallOptions) => Promise<CallResult>;

interface ProtocolCall {
  readonly call: CallMethod;
  readonly hasBody: boolean;
}

describe.each(engines)("a change on store=%s", (engine) => {
  let server: TestServer;
  let session: ClientHttp2Session;
  let tenant: MatrixTenant;
  /** The target of refused calls, which must stay unchanged. */
  let sharedTarget: Target;
  const gate = createChangeGate();

  beforeAll(async () => {
    // Tests advance the clock by minutes, which the target's session must outlive.
    const environment = { ...rateLimitsOff, SESSION_TTL: "1d" };
    server = await startServer(engine, { environment, wrapStore: gate.wrap });
    session = connect(server.url);
    tenant = await createMatrixTenant(server);
    sharedTarget = await tenant.createTarget();
  });

  afterAll(async () => {
    session?.destroy();
    await server?.close();
  });

  function createCalls(method: DescMethod): ProtocolCall[] {
    const [binding] = readBindings(method) as [Binding];
    return [
      {
        hasBody: true,
        call: (target, key, options) =>
          callGrpc(session, method, sampleOf(method, target), key, options),
      },
      {
        hasBody: binding.hasBody,
        call: (target, key, options) =>
          callRest(server.url, binding, sampleOf(method, target), key, options),
      },
    ];
  }

  /** The state that a call could have changed. */
  async function readState({ applicationId }: Target): Promise<unknown> {
    const { api, root } = tenant;
    const [{ pagination }, { data: sessions }, { version }] = await Promise.all([
      api.listApplications(root.key, { size: 1 }),
      api.listSessions(root.key, { applicationId, size: 100 }),
      api.getApplication(root.key, { id: applicationId }),
    ]);
    return {
      applications: pagination?.totalItems,
      version,
      sessions: sessions.map(({ id, state }) => [id, state]),
    };
  }

  /** Runs a callback before the body is sent or before the store commits the change. */
  const interrupts = {
    beforeBody: (run: () => Promise<unknown>): CallOptions => ({ beforeBody: run }),
    beforeCommit(run: () => Promise<unknown>): CallOptions {
      gate.beforeNext(run);
      return {};
    },
  };

  async function expectRefused(
    call: CallMethod,
    method: DescMethod,
    loss: Loss,
    moment: keyof typeof interrupts,
  ): Promise<void> {
    const caller = await loss.createCaller(tenant, method);
    let before: unknown;
    const options = interrupts[moment](async () => {
      await caller.lose();
      before = await readState(sharedTarget);
    });
    const { refusal } = await call(sharedTarget, caller.key, options);
    expect(refusal).toBe(loss.refusal);
    expect(before).toBeDefined();
    expect(await readState(sharedTarget)).toEqual(before);
  }

  // MongoDB is slower: there, one loss of each kind is tested with every method, the others with one.
  const completeOnMongo = ["is deleted", "is a session that is deleted"];

  describe.each(Object.entries(losses))("when its caller %s", (name, loss) => {
    const isComplete = engine === "lmdb" || completeOnMongo.includes(name);
    const tested = changeMethods
      .filter((method) => loss.appliesTo(method))
      .map((method) => [method.name, method] as const)
      .slice(0, isComplete ? undefined : 1);

    it.each(tested)(
      "is refused if that happens before its body arrives: %s",
      async (_name, method) => {
        for (const { call } of createCalls(method).filter(({ hasBody }) => hasBody)) {
          await expectRefused(call, method, loss, "beforeBody");
        }
      },
    );

    it.each(tested)("is refused if that happens before the commit: %s", async (_name, method) => {
      for (const { call } of createCalls(method)) {
        await expectRefused(call, method, loss, "beforeCommit");
      }
    });

    const replayable = tested.filter(([, method]) => isReplayable(method) && !loss.allowsReplay);
    for (const [name, method] of replayable) {
      it(`is refused if that happens before a replayed response: ${name}`, async () => {
        const [grpc, rest] = createCalls(method) as [ProtocolCall, ProtocolCall];
        for (const [{ call }, interrupt] of [
          [grpc, interrupts.beforeCommit],
          [rest, rest.hasBody ? interrupts.beforeBody : interrupts.beforeCommit],
        ] as const) {
          const headers = { "idempotency-key": newId(0) };
          const [target, caller] = await Promise.all([
            tenant.createTarget(),
            loss.createCaller(tenant, method),
          ]);
          expect(await call(target, caller.key, { headers })).not.toHaveProperty("refusal");
          const options = interrupt(caller.lose);
          const { refusal } = await call(target, caller.key, { headers, ...options });
          expect(refusal).toBe(loss.refusal);
        }
      });
    }
  });
});
