import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { OverviewService } from "../../../gen/latchkey/v1/overview_service_pb.js";
import { type Caller, callerHolds } from "../../auth/caller.js";
import { callerOf } from "../../call.js";
import { expiringDays, unusedDays } from "../../contract/defaults.js";
import type { Dependencies } from "../../dependencies.js";
import { yieldToEventLoop } from "../../lib/event-loop.js";
import { day } from "../../lib/time-units.js";
import type { ApplicationFilter, ListOrder } from "../../store/port/applications.js";
import { maxCounted } from "../pagination.js";

const expiringWithin = expiringDays * day;
const unusedFor = unusedDays * day;

export function createOverviewHandlers({
  store,
  untrustedForwarding,
}: Pick<Dependencies, "store" | "untrustedForwarding">): ServiceImpl<typeof OverviewService> {
  /** Counts applications by a filter that the index of the order covers. */
  async function countApplications(
    context: HandlerContext,
    filter: ApplicationFilter,
    order?: ListOrder,
  ): Promise<number> {
    const { tenantId } = callerOf(context).application;
    const query = { tenantId, filter, order, size: 1, from: { page: 1 } };
    const { total = 0 } = await store.applications.list(query, context.signal);
    // An embedded store counts synchronously.
    await yieldToEventLoop(tenantId);
    return total;
  }

  async function countSessions(context: HandlerContext) {
    const { tenantId } = callerOf(context).application;
    const { open, isComplete } = await store.sessions.count(
      { tenantId },
      maxCounted,
      context.signal,
    );
    return { open, ...(!isComplete && { capped: true }) };
  }

  return {
    async getOverview(_request, context) {
      const now = await store.now();
      const count = (filter: ApplicationFilter, order?: ListOrder) =>
        countApplications(context, filter, order);
      const countByType = {
        private: await count({ type: "private" }),
        public: await count({ type: "public" }),
        management: await count({ type: "management" }),
      };
      const total = countByType.private + countByType.public + countByType.management;
      // Applications may change between the counts.
      const disabled = Math.min(await count({ disabled: true }), total);
      return {
        applications: {
          ...countByType,
          total,
          enabled: total - disabled,
          disabled,
          expiring: await count({ expiresBefore: now + expiringWithin }, "expires_at"),
          unused: await count({ lastUsedBefore: now - unusedFor }, "last_used_at"),
        },
        ...(callerHolds(callerOf(context), "session:read") && {
          sessions: await countSessions(context),
        }),
        // About the whole service, so only for those who manage a tenant of it.
        ...(isManagement(callerOf(context)) &&
          untrustedForwarding.isRecent() && { untrustedForwarding: true }),
      };
    },
  };
}

function isManagement({ application, session }: Caller): boolean {
  return session === undefined && application.type === "management";
}
