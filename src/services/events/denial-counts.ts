import type { Principal } from "../../store/port/events.js";

/** A denied call for the audit log of its tenant. */
export interface Denial {
  readonly tenantId: string;
  readonly actor?: Principal | undefined;
  readonly target: Principal;
  readonly reason: string;
  readonly method?: string | undefined;
  readonly address?: string | undefined;
  readonly requestId?: string | undefined;
}

/** A group of similar denials. */
export interface CountedDenials {
  /** The first denial, which represents the group. */
  readonly denial: Denial;
  count: number;
}

/** Groups and counts denials until they are written. */
interface DenialCounts {
  add(denial: Denial, count: number): void;

  /** The number of groups to write. */
  readonly pending: number;

  /** Removes and returns the groups that are due, by a monotonic clock in milliseconds. */
  take(now: number): CountedDenials[];

  /** Returns and resets the number of denials that will not be written. */
  takeDropped(): number;
}

interface TenantCounts {
  readonly groups: Map<string, CountedDenials>;
  /** Denials beyond the maximum number of groups. */
  overflow?: CountedDenials;
  /** Nothing of this tenant is written before this time. */
  readonly dueAt: number;
}

/** Bounds on memory: tenants, groups in total, and groups per tenant. */
export const maxTenants = 5_000;
export const maxGroups = 5_000;
export const maxGroupsPerTenant = 20;

/** Milliseconds that a tenant waits per written event before the next write. */
export const delayPerEvent = 5_000;

/** The reason of an overflow group. */
export const severalReasons = "several";

/**
 * Bounds memory and writes, however many calls are denied. Denials beyond the
 * maximum number of groups are counted in one overflow group, and a tenant with
 * more events is written less often. Neither loses a count.
 */
export function createDenialCounts(): DenialCounts {
  const tenants = new Map<string, TenantCounts>();
  let groupCount = 0;
  let dropped = 0;

  function countsOf(tenantId: string): TenantCounts | undefined {
    const existing = tenants.get(tenantId);
    if (existing || tenants.size >= maxTenants) {
      return existing;
    }
    const counts = { groups: new Map(), dueAt: 0 };
    tenants.set(tenantId, counts);
    return counts;
  }

  function add(denial: Denial, count: number): void {
    const tenant = countsOf(denial.tenantId);
    if (!tenant) {
      dropped += count;
      return;
    }
    const key = groupKey(denial);
    const canAddGroup = tenant.groups.size < maxGroupsPerTenant && groupCount < maxGroups;
    const group = tenant.groups.get(key) ?? (canAddGroup ? undefined : tenant.overflow);
    if (group) {
      group.count += count;
    } else if (canAddGroup) {
      tenant.groups.set(key, { denial, count });
      groupCount++;
    } else {
      tenant.overflow = { denial: overflowDenial(denial), count };
    }
  }

  return {
    add,

    get pending() {
      let overflows = 0;
      for (const { overflow } of tenants.values()) {
        overflows += overflow ? 1 : 0;
      }
      return groupCount + overflows;
    },

    take(now) {
      const taken: CountedDenials[] = [];
      for (const [tenantId, { groups, overflow, dueAt }] of tenants) {
        if (now < dueAt) {
          continue;
        }
        const due = [...groups.values(), ...(overflow ? [overflow] : [])];
        if (due.length === 0) {
          tenants.delete(tenantId);
          continue;
        }
        groupCount -= groups.size;
        tenants.set(tenantId, { groups: new Map(), dueAt: now + due.length * delayPerEvent });
        taken.push(...due);
      }
      return taken;
    },

    takeDropped() {
      const count = dropped;
      dropped = 0;
      return count;
    },
  };
}

/** The properties that similar denials have in common. */
function groupKey({ actor, target, reason, method, address }: Denial): string {
  return `${principalKey(actor)} ${principalKey(target)} ${reason} ${method} ${address}`;
}

function principalKey(principal: Principal | undefined): string {
  return `${principal?.applicationId} ${principal?.sessionId} ${principal?.keyId}`;
}

function overflowDenial({ tenantId, requestId }: Denial): Denial {
  return { tenantId, target: {}, reason: severalReasons, requestId };
}
