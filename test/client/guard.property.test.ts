import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { repetitions } from "../support/suite.js";
import { createWorld, maxStaleness, type World } from "./guard-world.js";
import { settle } from "./scripted-service.js";

type Happening = (world: World) => void;

const index = fc.nat(5);
const few = fc.integer({ min: 1, max: 3 });

/** A check that is answered at once, so that there is something in the cache. */
const fill = index.map((index): Happening[] => [
  (world) => world.ask(index),
  (world) => world.lookUp(0),
  (world) => world.deliver(0),
]);

/** A check and a change of its subject that overtake each other in any way. */
const race = index.chain((index) => {
  const racing: Happening[] = [
    (world) => world.lookUp(0),
    (world) => world.change(index),
    (world) => world.emit(3),
    (world) => world.arrive(3),
    (world) => world.deliver(0),
  ];
  const order = fc.shuffledSubarray(racing, { minLength: 4 });
  const ask: Happening = (world) => world.ask(index);
  return order.map((order): Happening[] => [ask, ...order, ask]);
});

/** A stream that works, from its opening to its first message. */
const connect: Happening[] = [(world) => world.accept(), (world) => world.arrive(1)];
const beat: Happening[] = [(world) => world.emit(2), (world) => world.arrive(9)];

const single: fc.Arbitrary<Happening>[] = [
  fc.integer({ min: 1, max: 700 }).map((time) => (world) => world.pass(time)),
  fc.integer({ min: 700, max: 5_000 }).map((time) => (world) => world.pass(time)),
  index.map((index) => (world) => world.change(index)),
  index.map((index) => (world) => world.change(index)),
  index.map((index) => (world) => world.ask(index)),
  index.map((index) => (world) => world.ask(index)),
  index.map((index) => (world) => world.lookUp(index)),
  index.map((index) => (world) => world.deliver(index)),
  few.map((most) => (world) => world.emit(most)),
  few.map((most) => (world) => world.arrive(most)),
];

const rare: fc.Arbitrary<Happening>[] = [
  fc.constant((world) => world.failCheck()),
  fc.constant((world) => world.breakOff()),
  fc.constant((world) => world.reopen()),
  fc.constant((world) => world.prune()),
  fc.constant((world) => world.replaceData()),
];

const happenings = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: fc.oneof(...single).map((happening) => [happening]) },
      { weight: 1, arbitrary: fc.oneof(...rare).map((happening) => [happening]) },
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
    const property = fc.asyncProperty(options, happenings, async (options, happenings) => {
      const world = createWorld(options);
      for (const happen of happenings) {
        happen(world);
        await settle();
      }
      await world.close();
      for (const { answer, at, wasTrueSince } of world.given) {
        count[answer.source]++;
        expect(answer.staleness).toBeGreaterThanOrEqual(0);
        if (answer.source === "guard") {
          expect(answer.allowed).toBe(false);
          continue;
        }
        if (answer.source === "cache") {
          expect(answer.staleness).toBeLessThanOrEqual(maxStaleness);
        }
        expect(wasTrueSince(at - answer.staleness)).toBe(true);
      }
    });
    const numRuns = repetitions({ quick: 60, full: 120 });
    await fc.assert(property, { numRuns });
    // Otherwise this would have shown nothing.
    expect(count.cache).toBeGreaterThan(numRuns);
    expect(count.service).toBeGreaterThan(numRuns);
  });
});
