import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  WatchCredentialsRequest,
  WatchCredentialsResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import type { CursorSealer } from "../../auth/cursor-sealing.js";
import type { ChangeBatch, ChangeFeed } from "../../store/port/changes.js";
import { toTimestamp } from "../../validation/time.js";
import { heartbeatOf } from "../streams.js";

interface WatchOptions {
  readonly changes: ChangeFeed;
  readonly resumeTokens: CursorSealer;
  readonly tenantId: string;
  readonly request: WatchCredentialsRequest;
  /** Throws if the caller has lost its access. */
  readonly reauthorize: () => Promise<void>;
  readonly signal: AbortSignal;
}

/** Streams the credential changes of a tenant until the caller loses access or the signal aborts. */
export async function* watchCredentials(
  options: WatchOptions,
): AsyncGenerator<MessageInitShape<typeof WatchCredentialsResponseSchema>> {
  const { changes, resumeTokens, tenantId, request, reauthorize, signal } = options;
  const { resumeToken } = request;
  const heartbeat = heartbeatOf(request);
  const after = resumeToken === undefined ? undefined : resumeTokens.open(tenantId, resumeToken);

  for await (const batch of changes.follow({ tenantId, after, heartbeat, signal })) {
    await reauthorize();
    yield {
      changes: batch.changes.map((change) => ({ ...change, at: toTimestamp(change.at) })),
      // Changes were missed, so the caller must drop its cache.
      reset: batch.missed,
      resumeToken: resumeTokens.seal(tenantId, batch.position),
      completeUntil: completeUntil(batch),
    };
  }
  signal.throwIfAborted();
}

/** Rounded down, to never claim completeness too early. */
function completeUntil({ completeUntil }: ChangeBatch) {
  return completeUntil === undefined
    ? undefined
    : toTimestamp(Math.floor(performance.timeOrigin + completeUntil));
}
