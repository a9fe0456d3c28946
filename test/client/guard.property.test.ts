import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { repetitions } from "../support/jest/suite.js";
import { settle } from "./fake-service.js";
import { createSimulation, maxStaleness, type Simulation } from "./guard-simulation.js";

type Action = (simulation: Simulation) => void;

const index = fc.nat(5);
const limit = fc.integer({ min: 1, max: 3 });

/** A check with an immediate response, which fills the cache. */
const fill = index.map((index): Action[] => [
  (simulation) => simulation.startCheck(index),
  (simulation) => simulation.processCheck(0),
  (simulation) => simulation.deliverResponse(0),
]);

/** A check and a change of its principal, in any order. */
const race = index.chain((index) => {
  const racing: Action[] = [
    (simulation) => simulation.processCheck(0),
    (simulation) => simulation.change(index),
    (simulation) => simulation.sendChanges(3),
    (simulation) => simulation.deliverChanges(3),
    (simulation) => simulation.deliverResponse(0),
  ];
  const order = fc.shuffledSubarray(racing, { minLength: 4 });
  const runCheck: Action = (simulation) => simulation.startCheck(index);
  return order.map((order): Action[] => [runCheck, ...order, runCheck]);
});

/** A stream from its opening to its first message. */
const connect: Action[] = [
  (simulation) => simulation.accept(),
  (simulation) => simulation.deliverChanges(1),
];
const heartbeat: Action[] = [
  (simulation) => simulation.sendChanges(2),
  (simulation) => simulation.deliverChanges(9),
];

const single: fc.Arbitrary<Action>[] = [
  fc.integer({ min: 1, max: 700 }).map((time) => (simulation) => simulation.advance(time)),
  fc.integer({ min: 700, max: 5_000 }).map((time) => (simulation) => simulation.advance(time)),
  index.map((index) => (simulation) => simulation.change(index)),
  index.map((index) => (simulation) => simulation.change(index)),
  index.map((index) => (simulation) => simulation.startCheck(index)),
  index.map((index) => (simulation) => simulation.startCheck(index)),
  index.map((index) => (simulation) => simulation.processCheck(index)),
  index.map((index) => (simulation) => simulation.deliverResponse(index)),
  limit.map((limit) => (simulation) => simulation.sendChanges(limit)),
  limit.map((limit) => (simulation) => simulation.deliverChanges(limit)),
];

const rare: fc.Arbitrary<Action>[] = [
  fc.constant((simulation) => simulation.failCheck()),
  fc.constant((simulation) => simulation.disconnect()),
  fc.constant((simulation) => simulation.reopen()),
  fc.constant((simulation) => simulation.prune()),
  fc.constant((simulation) => simulation.replaceData()),
];

const actions = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: fc.oneof(...single).map((action) => [action]) },
      { weight: 1, arbitrary: fc.oneof(...rare).map((action) => [action]) },
      { weight: 2, arbitrary: fill },
      { weight: 2, arbitrary: race },
      { weight: 2, arbitrary: fc.constantFrom(connect, heartbeat) },
    ),
    { minLength: 20, maxLength: 80, size: "max" },
  )
  .map((parts) => parts.flat());

const options = fc.record({
  drift: fc.double({ min: -0.0009, max: 0.0009, noNaN: true }),
  offset: fc.double({ min: 0, max: 1_000_000, noNaN: true }),
  sessionExpiry: fc.integer({ min: 500, max: 30_000 }),
});

describe("a decision of a guard, for any sequence of events", () => {
  it("was correct within its reported staleness, which is bounded for the cache", async () => {
    const count = { cache: 0, service: 0, guard: 0 };
    const property = fc.asyncProperty(options, actions, async (options, actions) => {
      const simulation = createSimulation(options);
      for (const act of actions) {
        act(simulation);
        await settle();
      }
      await simulation.close();
      for (const { decision, at, wasCorrectSince } of simulation.recorded) {
        count[decision.source]++;
        expect(decision.staleness).toBeGreaterThanOrEqual(0);
        if (decision.source === "guard") {
          expect(decision.allowed).toBe(false);
          continue;
        }
        if (decision.source === "cache") {
          expect(decision.staleness).toBeLessThanOrEqual(maxStaleness);
        }
        expect(wasCorrectSince(at - decision.staleness)).toBe(true);
      }
    });
    const numRuns = repetitions({ quick: 60, full: 80 });
    await fc.assert(property, { numRuns });
    // Otherwise the sequences do not cover both sources.
    expect(count.cache).toBeGreaterThan(numRuns);
    expect(count.service).toBeGreaterThan(numRuns);
  });
});
