import { connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { CheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import { callRaw, envelope } from "../../support/http/raw-grpc.js";
import { classifyGrpc } from "./outage-calls.js";

/** Calls at a constant rate, independent of earlier responses. */
interface SteadyLoad {
  /** The number of calls so far. */
  count(): number;
  /** The number of calls by outcome so far. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Stops, and returns the outcomes after the last response. */
  stop(): Promise<Readonly<Record<string, number>>>;
}

interface Target {
  readonly url: string;
  readonly key: string;
}

/** Enough for all calls that wait for the store, within the stream limit of each session. */
const sessionCount = 12;

/** In milliseconds. */
const interval = 50;

export function startSteadyLoad(target: Target, perSecond: number): SteadyLoad {
  const { url, key } = target;
  const http2Sessions = Array.from({ length: sessionCount }, () => connect(url));
  const check = create(CheckAccessRequestSchema, {
    principal: { case: "key", value: key },
    permission: "access:check",
  });
  // Concurrent checks share one lookup of the caller; lists are read separately.
  const calls = [
    ["AccessService/CheckAccess", envelope(toBinary(CheckAccessRequestSchema, check))],
    ["ApplicationService/ListApplications", envelope("")],
  ] as const;
  const outcomes: Record<string, number> = {};
  const startedAt = performance.now();
  const pending: Promise<void>[] = [];

  async function call(index: number): Promise<void> {
    const [method, body] = calls[index % calls.length] as (typeof calls)[number];
    const request = { headers: { "svc-api-key": key }, body };
    const outcome = await callRaw(
      target,
      `/latchkey.v1.${method}`,
      request,
      http2Sessions[index % sessionCount],
    )
      .then((response) => classifyGrpc(response).outcome)
      .catch(({ message }: Error) => message);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }

  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * perSecond;
    while (pending.length < due) {
      pending.push(call(pending.length));
    }
  }, interval);

  return {
    count: () => pending.length,
    outcomes,

    async stop() {
      clearInterval(timer);
      await Promise.all(pending);
      for (const session of http2Sessions) {
        session.destroy();
      }
      return outcomes;
    },
  };
}
