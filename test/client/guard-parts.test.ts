import { beforeEach, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { questionId } from "../../src/client/check-request.js";
import { createSleeplessClock } from "../../src/client/create-guard.js";
import { createAnswerCache } from "../../src/client/decision-cache.js";
import { createGate } from "../../src/client/middleware.js";
import { createScriptedGuard, keys } from "../support/guarded-service.js";

describe("the clock of a guard", () => {
  let monotonic: number;
  let calendar: number;
  let now: () => number;

  beforeEach(() => {
    monotonic = 100;
    calendar = 1_000_000;
    now = createSleeplessClock(
      () => monotonic,
      () => calendar,
    );
  });

  function pass(milliseconds: number): void {
    monotonic += milliseconds;
    calendar += milliseconds;
  }

  describe("the clock of a guard", () => {
    it("runs with the clock of the process", () => {
      pass(1_234);
      expect(now()).toBe(1_334);
    });

    it("counts the time in which the clock of the process stood still", () => {
      pass(10);
      now();
      calendar += 3_600_000;
      pass(10);
      expect(now()).toBe(3_600_120);
      pass(10);
      expect(now()).toBe(3_600_130);
    });

    it("takes no notice of a calendar that is set back", () => {
      calendar -= 3_600_000;
      expect(now()).toBe(100);
      pass(10);
      expect(now()).toBe(110);
    });

    it("counts sleep also after the calendar was set back", () => {
      calendar -= 3_600_000;
      now();
      calendar += 5_000;
      expect(now()).toBe(5_100);
    });

    it("takes no notice of a calendar that is rounded to milliseconds", () => {
      calendar = 1_000_000.5;
      now = createSleeplessClock(
        () => monotonic,
        () => Math.floor(calendar),
      );
      for (let step = 0; step < 1_000; step++) {
        pass(0.7);
        now();
      }
      expect(now()).toBeCloseTo(800);
    });
  });
});

describe("the cache of a guard", () => {
  const forever = Number.POSITIVE_INFINITY;
  const entry = { subjects: ["subject"], asked: 0, lifetime: forever };

  function createCache(maxEntries = 3, maxAge = 1_000) {
    return createAnswerCache<string>({ maxEntries, maxAge });
  }

  describe("the answer cache", () => {
    it("gives back what was put in, and nothing else", () => {
      const cache = createCache();
      cache.set("a", { ...entry, answer: "yes" });
      expect(cache.get("a", 0)).toBe("yes");
      expect(cache.get("b", 0)).toBeUndefined();
    });

    it("holds no more than its bound, and lets go first of what was used longest ago", () => {
      const cache = createCache();
      for (const id of ["a", "b", "c"]) {
        cache.set(id, { ...entry, answer: id });
      }
      cache.get("a", 0);
      cache.set("d", { ...entry, answer: "d" });
      expect(["a", "b", "c", "d"].map((id) => cache.get(id, 0))).toEqual([
        "a",
        undefined,
        "c",
        "d",
      ]);
    });

    it("makes no room for an answer that takes the place of an older one", () => {
      const cache = createCache(2);
      for (const [id, answer] of [
        ["a", "old"],
        ["b", "b"],
        ["a", "new"],
      ] as const) {
        cache.set(id, { ...entry, answer });
      }
      expect([cache.get("a", 0), cache.get("b", 0)]).toEqual(["new", "b"]);
    });

    it("can be told to hold nothing", () => {
      const cache = createCache(0);
      cache.set("a", { ...entry, answer: "a" });
      expect(cache.get("a", 0)).toBeUndefined();
    });

    it("ends an answer at the millisecond at which its life ends", () => {
      const cache = createCache();
      cache.set("a", { ...entry, answer: "a", asked: 100, lifetime: 50 });
      expect(cache.get("a", 149.999)).toBe("a");
      expect(cache.get("a", 150)).toBeUndefined();
    });

    it("ends an answer when it reaches the greatest age", () => {
      const cache = createCache();
      cache.set("a", { ...entry, answer: "a", asked: 100 });
      expect(cache.get("a", 1_099)).toBe("a");
      expect(cache.get("a", 1_100)).toBeUndefined();
    });

    it.each([0, -5, Number.NaN])(
      "pushes out nothing for an answer with a life of %p",
      (lifetime) => {
        const cache = createCache(1);
        cache.set("a", { ...entry, answer: "a" });
        cache.set("b", { ...entry, answer: "b", lifetime });
        expect([cache.get("a", 0), cache.get("b", 0)]).toEqual(["a", undefined]);
      },
    );

    it("forgets what is about a subject, by each of its subjects", () => {
      const cache = createCache();
      cache.set("session", {
        ...entry,
        answer: "s",
        subjects: ["application", undefined, "session"],
      });
      cache.set("other", { ...entry, answer: "o", subjects: ["other"] });
      cache.forget("session");
      expect([cache.get("session", 0), cache.get("other", 0)]).toEqual([undefined, "o"]);
    });

    it("no longer ties an answer to the subjects of the one before it", () => {
      const cache = createCache();
      cache.set("a", { ...entry, answer: "old", subjects: ["one"] });
      cache.set("a", { ...entry, answer: "new", subjects: ["other"] });
      cache.forget("one");
      expect(cache.get("a", 0)).toBe("new");
    });

    it("forgets everything", () => {
      const cache = createCache();
      cache.set("a", { ...entry, answer: "a" });
      cache.clear();
      expect(cache.get("a", 0)).toBeUndefined();
    });

    it("does what a list of answers does, whatever is done to it", () => {
      fc.assert(
        fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
          const cache = createCache(4, 50);
          const model = createModel(4, 50);
          for (const [index, act] of actions.entries()) {
            expect(act(cache, index)).toEqual(act(model, index));
          }
        }),
        { numRuns: 500 },
      );
    });
  });

  describe("the id of a question", () => {
    it("differs with each part and its place", () => {
      const questions = [
        ["a", "b"],
        ["b", "a"],
        ["ab"],
        ["a", "b", undefined],
        ["a", undefined, "b"],
        ['a","b'],
        ["a", "null"],
        ["a", ""],
      ];
      expect(new Set(questions.map(questionId)).size).toBe(questions.length);
    });

    it("does not tell the key", () => {
      expect(questionId(["lk_prv_secret"])).not.toContain("secret");
    });
  });

  type Cache = ReturnType<typeof createCache>;
  type Action = (cache: Cache, now: number) => unknown;

  const id = fc.constantFrom("a", "b", "c", "d", "e", "f");
  const subject = fc.constantFrom("x", "y", "z");
  const action: fc.Arbitrary<Action> = fc.oneof(
    {
      weight: 4,
      arbitrary: id.map(
        (id): Action =>
          (cache, now) =>
            cache.get(id, now),
      ),
    },
    {
      weight: 4,
      arbitrary: fc
        .tuple(id, fc.array(fc.option(subject, { nil: undefined }), { maxLength: 3 }), fc.nat(40))
        .map(
          ([id, subjects, lifetime]): Action =>
            (cache, now) =>
              cache.set(id, { answer: `${id} of ${now}`, subjects, asked: now, lifetime }),
        ),
    },
    subject.map(
      (subject): Action =>
        (cache) =>
          cache.forget(subject),
    ),
    fc.constant<Action>((cache) => cache.clear()),
  );

  /** The cache as simple as can be: a list, the one used last at its end. */
  function createModel(maxEntries: number, maxAge: number): Cache {
    type Kept = { id: string; answer: string; subjects: readonly unknown[]; ends: number };
    let kept: Kept[] = [];
    return {
      get(id, now) {
        const found = kept.find((entry) => entry.id === id);
        kept = kept.filter((entry) => entry !== found);
        if (!found || found.ends <= now) {
          return undefined;
        }
        kept.push(found);
        return found.answer;
      },

      set(id, { answer, subjects, asked, lifetime }) {
        kept = kept.filter((entry) => entry.id !== id);
        if (lifetime > 0) {
          kept.push({ id, answer, subjects, ends: asked + Math.min(lifetime, maxAge) });
        }
        kept = kept.slice(-maxEntries);
      },

      forget(subject) {
        kept = kept.filter(({ subjects }) => !subjects.includes(subject));
      },

      clear() {
        kept = [];
      },
    };
  }
});

describe("the gate of a middleware", () => {
  const gate = createGate(createScriptedGuard(), { permission: "token:read" });

  it.each([
    ["nothing", undefined],
    ["nothing, in another way", null],
    ["an empty list", []],
    ["two keys that were kept apart", [keys.good, keys.good]],
    ["bytes", [Buffer.from(keys.good)]],
  ])("refuses %s", async (_case, key) => {
    const { answer, refusal } = await gate.admit({}, { key, origin: undefined });
    expect(answer).toBeUndefined();
    expect(refusal).toMatchObject({ word: "unauthenticated", status: 401 });
  });

  it.each([
    ["a text", keys.good],
    ["a list of one", [keys.good]],
  ])("takes %s", async (_case, key) => {
    const admission = await gate.admit({}, { key, origin: undefined });
    expect(admission).toMatchObject({ answer: { allowed: true } });
  });

  it.each([
    ["nothing", null, undefined],
    ["an empty list", [], undefined],
    ["a text", "https://a.example", "https://a.example"],
    ["a list of one", ["https://a.example"], "https://a.example"],
    ["several, of which none can be meant", ["https://a.example", "https://b.example"], undefined],
  ])("takes for the origin %s", async (_case, origin, asked) => {
    const guard = createScriptedGuard();
    const gate = createGate(guard, { permission: "token:read" });
    await gate.admit({}, { key: keys.good, origin, address: "::1" });
    expect(guard.places).toEqual([{ origin: asked, address: "::1" }]);
  });
});
