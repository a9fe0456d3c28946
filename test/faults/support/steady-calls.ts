import { connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { CheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import { callRaw, envelope } from "../../support/http/raw-grpc.js";
import { judgeGrpc } from "./outage-calls.js";

/** Calls that come at a steady pace, whether those before them were answered or not. */
interface SteadyCalls {
  /** How many calls were made so far. */
  made(): number;
  /** How many calls had which outcome so far. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Calls no more, and answers how many calls had which outcome when all have one. */
  stop(): Promise<Readonly<Record<string, number>>>;
}

interface Target {
  readonly url: string;
  readonly key: string;
}

/** So many that none lacks a stream while each of its calls waits for the store. */
const sessions = 12;

const pause = 50;

export function startSteadyCalls(target: Target, perSecond: number): SteadyCalls {
  const { url, key } = target;
  const open = Array.from({ length: sessions }, () => connect(url));
  const check = create(CheckAccessRequestSchema, { key, permission: "access:check" });
  // The first looks callers up, which those that come together share; the second reads by itself.
  const calls = [
    ["AccessService/CheckAccess", envelope(toBinary(CheckAccessRequestSchema, check))],
    ["ApplicationService/ListApplications", envelope("")],
  ] as const;
  const outcomes: Record<string, number> = {};
  const begun = performance.now();
  const made: Promise<void>[] = [];

  async function call(turn: number): Promise<void> {
    const [method, body] = calls[turn % calls.length] as (typeof calls)[number];
    const request = { headers: { "svc-api-key": key }, body };
    const outcome = await callRaw(target, `/latchkey.v1.${method}`, request, open[turn % sessions])
      .then((answer) => judgeGrpc(answer).outcome)
      .catch(({ message }: Error) => message);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }

  const calling = setInterval(() => {
    const due = ((performance.now() - begun) / 1000) * perSecond;
    while (made.length < due) {
      made.push(call(made.length));
    }
  }, pause);

  return {
    made: () => made.length,
    outcomes,

    async stop() {
      clearInterval(calling);
      await Promise.all(made);
      for (const session of open) {
        session.destroy();
      }
      return outcomes;
    },
  };
}
