import {
  defaultTransform,
  inEvaluationOrder,
  rankOfTransform,
} from "../contract/decisions/decide.js";
import { withSlashes } from "../contract/decisions/scope.js";
import { type Grants, heldPermissions } from "../contract/grants.js";
import { quote } from "../contract/problems.js";

/** The grants that are compared. */
interface ComparedGrants {
  /** For each token, the giver gets the least of what these decide. */
  readonly givers: readonly Grants[];
  readonly requested: Grants;
  /** What the target has, which needs no coverage. */
  readonly current?: Grants | undefined;
  /** Compares only these permissions. */
  readonly concerns: (permission: string) => boolean;
}

export interface GrantComparison {
  /** The permissions that decide more than the current grants for some token. */
  readonly given: readonly string[];
  /** The grants that decide more than the giver gets and than the current grants. */
  readonly uncovered: readonly UncoveredGrant[];
}

interface UncoveredGrant {
  readonly permission: string;
  /** Its path, for example `rules[0].permissions[1]`. */
  readonly field: string;
  /** Describes it, with a container in which it decides too much. */
  readonly text: string;
}

/**
 * Compares what grants decide, for every token.
 *
 * The decision about a permission can only change at the containers of the rules
 * that list it. So it is compared once for each of these containers, and once for
 * requests without a token, in a time that grows with the number of rules.
 */
export function compareGrants(grants: ComparedGrants): GrantComparison {
  const { givers, requested, current = noGrants, concerns } = grants;
  const names = new Set(heldPermissions(requested).filter(concerns));
  const [deciders = new Map(), ...others] = [requested, current, ...givers].map((each) =>
    decidersOf(each, names),
  );
  const given: string[] = [];
  const uncovered: UncoveredGrant[] = [];
  for (const permission of names) {
    const lists = [deciders, ...others].map((each) => each.get(permission) ?? []);
    let isGiven = false;
    const reported = new Set<Decider>();
    for (const { container, firsts } of regionsOf(lists)) {
      const [wanted = nothing, before = nothing, ...own] = lists.map(
        (list, index) => list[firsts[index] as number] ?? nothing,
      );
      if (wanted.level <= before.level) {
        continue;
      }
      isGiven = true;
      const least = own.reduce((one, other) => (other.level < one.level ? other : one));
      if (wanted.level > least.level && uncovered.length < maxUncovered && !reported.has(wanted)) {
        reported.add(wanted);
        const field = fieldOf(requested, permission, wanted);
        const text = describe(permission, wanted, container, least);
        uncovered.push({ permission, field, text });
      }
    }
    if (isGiven) {
      given.push(permission);
    }
  }
  return { given, uncovered };
}

/** More are not reported. */
const maxUncovered = 20;

const noGrants: Grants = { permissions: [], rules: [] };

/** A rule or a directly granted permission, which can decide about a permission. */
interface Decider {
  /** The rule that lists the permission. Absent if it is granted directly. */
  readonly ruleIndex?: number;
  /** Absent if it also applies to requests without a token. */
  readonly container: string | undefined;
  readonly transform: string;
  /** A higher level shows more of a token. */
  readonly level: number;
}

/** Stands for a denial. */
const nothing: Decider = { container: undefined, transform: "nothing", level: -1 };

/** The deciders of permissions in evaluation order, of which a directly granted permission is the last. */
function decidersOf(
  { permissions, rules }: Grants,
  names: ReadonlySet<string>,
): ReadonlyMap<string, readonly Decider[]> {
  const deciders = new Map<string, Decider[]>([...names].map((name) => [name, []]));
  for (const { rule, index: ruleIndex } of inEvaluationOrder(rules)) {
    const { conditions, transform } = rule;
    const container = rule.container === undefined ? undefined : withSlashes(rule.container);
    // Only sessions have conditions. What a rule decides about some tokens covers no container.
    const granted =
      conditions.length > 0 ? nothing : { transform, level: rankOfTransform(transform) };
    const decider = { ruleIndex, container, transform: granted.transform, level: granted.level };
    for (const permission of rule.permissions) {
      deciders.get(permission)?.push(decider);
    }
  }
  for (const permission of permissions) {
    const transform = defaultTransform(permission);
    const level = rankOfTransform(transform);
    deciders.get(permission)?.push({ container: undefined, transform, level });
  }
  return deciders;
}

/** Requests about which the same deciders decide. */
interface Region {
  /** The container in which they are, without those of narrower regions. Absent for requests without a token. */
  readonly container: string | undefined;
  /** The index of the decider in each list. Infinite if none applies. */
  readonly firsts: readonly number[];
}

/** A region with the one around it. */
interface Nested extends Region {
  readonly container: string;
  readonly parent: Nested | undefined;
}

/** Yields every region of some lists of deciders. */
function* regionsOf(lists: readonly (readonly Decider[])[]): Generator<Region> {
  const firstsByContainer = new Map<string | undefined, number[]>();
  lists.forEach((list, listIndex) => {
    list.forEach(({ container }, rank) => {
      let firsts = firstsByContainer.get(container);
      if (!firsts) {
        firsts = lists.map(() => Number.POSITIVE_INFINITY);
        firstsByContainer.set(container, firsts);
      }
      firsts[listIndex] = Math.min(firsts[listIndex] as number, rank);
    });
  });
  const everywhere = firstsByContainer.get(undefined) ?? lists.map(() => Number.POSITIVE_INFINITY);
  firstsByContainer.delete(undefined);
  yield { container: undefined, firsts: everywhere };
  // In this order, a container is directly followed by everything below it.
  const sorted = [...firstsByContainer].sort(([one = ""], [other = ""]) => (one < other ? -1 : 1));
  let top: Nested | undefined;
  for (const [container = "", own] of sorted) {
    while (top && !container.startsWith(top.container)) {
      top = top.parent;
    }
    const around = top?.firsts ?? everywhere;
    const firsts = own.map((first, index) => Math.min(first, around[index] as number));
    top = { container, firsts, parent: top };
    yield top;
  }
}

function fieldOf(
  { permissions, rules }: Grants,
  permission: string,
  { ruleIndex }: Decider,
): string {
  if (ruleIndex === undefined) {
    return `permissions[${permissions.indexOf(permission)}]`;
  }
  const index = rules[ruleIndex]?.permissions.indexOf(permission);
  return `rules[${ruleIndex}].permissions[${index}]`;
}

function describe(
  permission: string,
  wanted: Decider,
  container: string | undefined,
  own: Decider,
): string {
  const where = container === undefined ? "without a token" : `in ${quote(container)}`;
  return `${permission}: ${wanted.transform} ${where}, where you have ${own.transform}`;
}
