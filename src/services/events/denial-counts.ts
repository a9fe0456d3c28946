import type { Party } from "../../store/port/events.js";

/** A call that was refused, of which those in its tenant may want to know. */
export interface Denial {
  readonly tenantId: string;
  readonly actor?: Party | undefined;
  readonly target: Party;
  readonly reason: string;
  readonly method?: string | undefined;
  readonly address?: string | undefined;
  readonly requestId?: string | undefined;
}

/** Refusals that are alike. */
export interface CountedDenials {
  /** The first of them, which stands for all. */
  readonly denial: Denial;
  count: number;
}

/** Counts refusals, those that are alike together, until they are told. */
export interface DenialCounts {
  add(denial: Denial, count: number): void;

  /** How many kinds of refusals are to be told. */
  readonly pending: number;

  /** Takes what is to be told now, by a clock in milliseconds that only runs forward. */
  take(now: number): CountedDenials[];

  /** Takes the number of those of which no event will tell. */
  takeDropped(): number;
}

interface TenantCounts {
  readonly groups: Map<string, CountedDenials>;
  /** Those beyond. */
  rest?: CountedDenials;
  /** Before that nothing more of the tenant is told. */
  readonly dueAt: number;
}

/** How many tenants are counted for at a time, how many kinds of refusals in all, and how many of one tenant. */
export const maxTenants = 5_000;
export const maxGroups = 5_000;
export const maxGroupsPerTenant = 20;

/** How many milliseconds a tenant waits, for each event that it was told, for the next ones. */
export const delayPerEvent = 5_000;

/** The reason of those that were too many to be told apart. */
export const severalReasons = "several";

/**
 * Creates counts that cannot grow, and of which little is written, however
 * often and in however many ways callers are refused: in a tenant with many
 * different refusals those beyond a number are counted as one, and the more
 * was told of it the longer it waits. Nothing is lost by either.
 */
export function createDenialCounts(): DenialCounts {
  const tenants = new Map<string, TenantCounts>();
  let groupCount = 0;
  let untold = 0;

  function countsOf(tenantId: string): TenantCounts | undefined {
    const known = tenants.get(tenantId);
    if (known || tenants.size >= maxTenants) {
      return known;
    }
    const counts = { groups: new Map(), dueAt: 0 };
    tenants.set(tenantId, counts);
    return counts;
  }

  function add(denial: Denial, count: number): void {
    const tenant = countsOf(denial.tenantId);
    if (!tenant) {
      untold += count;
      return;
    }
    const name = nameOf(denial);
    const isRoom = tenant.groups.size < maxGroupsPerTenant && groupCount < maxGroups;
    const group = tenant.groups.get(name) ?? (isRoom ? undefined : tenant.rest);
    if (group) {
      group.count += count;
    } else if (isRoom) {
      tenant.groups.set(name, { denial, count });
      groupCount++;
    } else {
      tenant.rest = { denial: withoutParticulars(denial), count };
    }
  }

  return {
    add,

    get pending() {
      let rests = 0;
      for (const { rest } of tenants.values()) {
        rests += rest ? 1 : 0;
      }
      return groupCount + rests;
    },

    take(now) {
      const taken: CountedDenials[] = [];
      for (const [tenantId, { groups, rest, dueAt }] of tenants) {
        if (now < dueAt) {
          continue;
        }
        const told = [...groups.values(), ...(rest ? [rest] : [])];
        if (told.length === 0) {
          tenants.delete(tenantId);
          continue;
        }
        groupCount -= groups.size;
        tenants.set(tenantId, { groups: new Map(), dueAt: now + told.length * delayPerEvent });
        taken.push(...told);
      }
      return taken;
    },

    takeDropped() {
      const count = untold;
      untold = 0;
      return count;
    },
  };
}

/** What is the same of all that are counted together. */
function nameOf({ actor, target, reason, method, address }: Denial): string {
  return `${nameOfParty(actor)} ${nameOfParty(target)} ${reason} ${method} ${address}`;
}

function nameOfParty(party: Party | undefined): string {
  return `${party?.applicationId} ${party?.sessionId} ${party?.keyId}`;
}

function withoutParticulars({ tenantId, requestId }: Denial): Denial {
  return { tenantId, target: {}, reason: severalReasons, requestId };
}
