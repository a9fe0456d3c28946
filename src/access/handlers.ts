import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type AccessService,
  type CheckAccessRequest,
  CheckAccessRequestSchema,
  type StreamCheckAccessRequest,
  StreamCheckAccessRequestSchema,
} from "../../gen/latchkey/v1/access_service_pb.js";
import { callerOf, endOf, grantsOf, readmissionOf } from "../caller.js";
import { shuttingDown } from "../errors.js";
import { showGrants } from "../grants.js";
import type { Keyring } from "../keys.js";
import { toTimestamp } from "../moments.js";
import { nextTurn } from "../next-turn.js";
import type { ApplicationType, Clock, Store } from "../store/store.js";
import { untilEither } from "../until-either.js";
import { checkMessage } from "../validation.js";
import { answerAmongMany } from "./among-many.js";
import { type CheckAnswer, createCheck } from "./check.js";
import { mapConcurrently } from "./map-concurrently.js";
import { oncePerTurn } from "./once-per-turn.js";
import { listPermissions } from "./permissions.js";
import { createResumeTokens } from "./resume-token.js";
import { watch } from "./watch.js";

/** How many checks of a batch are made in one go: other calls are not kept waiting for all of them. */
const batchPart = 200;

/** How many checks of a stream are under way at a time. */
const streamWindow = 256;

interface AccessHandlerOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** Given when the server stops: it ends streams. */
  readonly stopping: AbortSignal;
}

export function createAccessHandlers({
  store,
  keyring,
  clock,
  stopping,
}: AccessHandlerOptions): ServiceImpl<typeof AccessService> {
  const check = createCheck({ store, keyring, clock });
  const resumeTokens = createResumeTokens(store.id);
  const tenantOf = (context: HandlerContext) => callerOf(context).application.tenantId;

  /** Opens a stream that ends with its call, and when the server stops. */
  async function* stream<T>(
    { signal }: HandlerContext,
    open: (signal: AbortSignal) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    try {
      yield* untilEither(signal, stopping, open);
    } catch (reason) {
      // A call that was given up is told of where calls are observed.
      if (reason !== signal.reason) {
        throw reason === stopping.reason ? shuttingDown() : reason;
      }
    }
  }

  return {
    checkAccess: (request, context) => check(tenantOf(context), request),

    async batchCheckAccess({ checks }, context) {
      const tenantId = tenantOf(context);
      const answer = (request: CheckAccessRequest) =>
        answerAmongMany(clock, () => {
          checkMessage(CheckAccessRequestSchema, request);
          return check(tenantId, request);
        });
      const results: CheckAnswer[] = [];
      while (results.length < checks.length) {
        const part = checks.slice(results.length, results.length + batchPart);
        if (results.length > 0) {
          await nextTurn();
        }
        results.push(...(await Promise.all(part.map(answer))));
      }
      return { results };
    },

    streamCheckAccess(requests, context) {
      const tenantId = tenantOf(context);
      const readmit = oncePerTurn(readmissionOf(context));
      const answer = async (request: StreamCheckAccessRequest) => {
        const result = answerAmongMany(clock, () => {
          checkMessage(StreamCheckAccessRequestSchema, request);
          return check(tenantId, request.check ?? create(CheckAccessRequestSchema));
        });
        // Asked together, so that they share a look-up; answered only where both succeed.
        await Promise.all([readmit(), result]);
        return { correlationId: request.correlationId, result: await result };
      };
      return stream(context, (signal) =>
        mapConcurrently({ items: requests, map: answer, limit: streamWindow, signal }),
      );
    },

    whoAmI(_request, context) {
      const caller = callerOf(context);
      const { application, session } = caller;
      return {
        kind: session ? "session" : "application",
        applicationId: application.id,
        sessionId: session?.id,
        tenantId: application.tenantId,
        name: application.name,
        type: application.type,
        authorized: !session || session.authorizedAt !== undefined,
        ...showGrants(grantsOf(caller)),
        expiresAt: toTimestamp(endOf(caller)),
      };
    },

    listPermissions: ({ type }) => ({ data: listPermissions(type as ApplicationType | undefined) }),

    watchCredentials(request, context) {
      const tenantId = tenantOf(context);
      const readmit = readmissionOf(context);
      const { changes } = store;
      return stream(context, (signal) =>
        watch({ changes, resumeTokens, tenantId, request, readmit, signal }),
      );
    },
  };
}
