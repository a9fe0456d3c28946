import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { repetitions } from "../support/jest/suite.js";
import { settle } from "./fake-service.js";
import { createWorld, maxStaleness, type World } from "./guard-simulation.js";

type Action = (world: World) => void;

const index = fc.nat(5);
const few = fc.integer({ min: 1, max: 3 });

/** A check with an immediate response, which fills the cache. */
const fill = index.map((index): Action[] => [
  (world) => world.startCheck(index),
  (world) => world.lookUp(0),
  (world) => world.deliver(0),
]);

/** A check and a change of its subject, in any order. */
const race = index.chain((index) => {
  const racing: Action[] = [
    (world) => world.lookUp(0),
    (world) => world.change(index),
    (world) => world.emit(3),
    (world) => world.arrive(3),
    (world) => world.deliver(0),
  ];
  const order = fc.shuffledSubarray(racing, { minLength: 4 });
  const runCheck: Action = (world) => world.startCheck(index);
  return order.map((order): Action[] => [runCheck, ...order, runCheck]);
});

/** A stream from its opening to its first message. */
const connect: Action[] = [(world) => world.accept(), (world) => world.arrive(1)];
const beat: Action[] = [(world) => world.emit(2), (world) => world.arrive(9)];

const single: fc.Arbitrary<Action>[] = [
  fc.integer({ min: 1, max: 700 }).map((time) => (world) => world.pass(time)),
  fc.integer({ min: 700, max: 5_000 }).map((time) => (world) => world.pass(time)),
  index.map((index) => (world) => world.change(index)),
  index.map((index) => (world) => world.change(index)),
  index.map((index) => (world) => world.startCheck(index)),
  index.map((index) => (world) => world.startCheck(index)),
  index.map((index) => (world) => world.lookUp(index)),
  index.map((index) => (world) => world.deliver(index)),
  few.map((most) => (world) => world.emit(most)),
  few.map((most) => (world) => world.arrive(most)),
];

const rare: fc.Arbitrary<Action>[] = [
  fc.constant((world) => world.failCheck()),
  fc.constant((world) => world.breakOff()),
  fc.constant((world) => world.reopen()),
  fc.constant((world) => world.prune()),
  fc.constant((world) => world.replaceData()),
];

const actions = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: fc.oneof(...single).map((action) => [action]) },
      { weight: 1, arbitrary: fc.oneof(...rare).map((action) => [action]) },
      { weight: 2, arbitrary: fill },
      { weight: 2, arbitrary: race },
      { weight: 2, arbitrary: fc.constantFrom(connect, beat) },
    ),
    { minLength: 20, maxLength: 80, size: "max" },
  )
  .map((parts) => parts.flat());

const options = fc.record({
  drift: fc.double({ min: -0.0009, max: 0.0009, noNaN: true }),
  offset: fc.double({ min: 0, max: 1_000_000, noNaN: true }),
  sessionEnd: fc.integer({ min: 500, max: 30_000 }),
});

describe("a decision of a guard, for any sequence of events", () => {
  it("was correct within its reported staleness, which is bounded for the cache", async () => {
    const count = { cache: 0, service: 0, guard: 0 };
    const property = fc.asyncProperty(options, actions, async (options, actions) => {
      const world = createWorld(options);
      for (const act of actions) {
        act(world);
        await settle();
      }
      await world.close();
      for (const { decision, at, wasTrueSince } of world.recorded) {
        count[decision.source]++;
        expect(decision.staleness).toBeGreaterThanOrEqual(0);
        if (decision.source === "guard") {
          expect(decision.allowed).toBe(false);
          continue;
        }
        if (decision.source === "cache") {
          expect(decision.staleness).toBeLessThanOrEqual(maxStaleness);
        }
        expect(wasTrueSince(at - decision.staleness)).toBe(true);
      }
    });
    const numRuns = repetitions({ quick: 60, full: 120 });
    await fc.assert(property, { numRuns });
    // Otherwise the test would prove nothing.
    expect(count.cache).toBeGreaterThan(numRuns);
    expect(count.service).toBeGreaterThan(numRuns);
  });
});
