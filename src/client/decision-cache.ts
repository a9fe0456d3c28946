import { type GuardAnswer, placedId, type Question } from "./check-request.js";

interface NewEntry<A> {
  readonly answer: A;
  /**
   * Whom the answer is about: the ids of the application or session of the key
   * that was asked about, and of what it belongs to. It is wrong once one of
   * them changes.
   */
  readonly subjects: readonly (string | undefined)[];
  /** When it was asked for. */
  readonly asked: number;
  /** For how long from then it is good, in milliseconds. */
  readonly lifetime: number;
}

interface Entry<A> {
  readonly answer: A;
  readonly subjects: ReadonlySet<string>;
  readonly ends: number;
}

/** Keeps a bounded number of answers, the ones asked for last, until something changes. */
export interface AnswerCache<A> {
  /** Answers what is known about a question, given by its id. */
  get(id: string, now: number): A | undefined;
  set(id: string, entry: NewEntry<A>): void;
  /** Forgets all that was about an application or session. */
  forget(subject: string): void;
  clear(): void;
}

interface CacheLimits {
  readonly maxEntries: number;
  /** How long an answer is kept at most, in milliseconds. */
  readonly maxAge: number;
}

export function createAnswerCache<A>({ maxEntries, maxAge }: CacheLimits): AnswerCache<A> {
  // A map lists its entries in the order of their insertion: the first is the one used longest ago.
  const entries = new Map<string, Entry<A>>();
  const bySubject = new Map<string, Set<string>>();

  function remove(id: string): void {
    for (const subject of entries.get(id)?.subjects ?? []) {
      const ids = bySubject.get(subject);
      ids?.delete(id);
      if (ids?.size === 0) {
        bySubject.delete(subject);
      }
    }
    entries.delete(id);
  }

  function add(id: string, entry: Entry<A>): void {
    entries.set(id, entry);
    for (const subject of entry.subjects) {
      const ids = bySubject.get(subject) ?? new Set();
      bySubject.set(subject, ids.add(id));
    }
  }

  function removeOldest(): void {
    for (const id of entries.keys()) {
      remove(id);
      return;
    }
  }

  return {
    get(id, now) {
      const entry = entries.get(id);
      if (!entry) {
        return undefined;
      }
      if (now >= entry.ends) {
        remove(id);
        return undefined;
      }
      entries.delete(id);
      entries.set(id, entry);
      return entry.answer;
    },

    set(id, { answer, subjects, asked, lifetime }) {
      remove(id);
      if (!(lifetime > 0)) {
        return;
      }
      const known = subjects.filter((subject) => subject !== undefined);
      add(id, { answer, subjects: new Set(known), ends: asked + Math.min(lifetime, maxAge) });
      if (entries.size > maxEntries) {
        removeOldest();
      }
    },

    forget(subject) {
      for (const id of bySubject.get(subject) ?? []) {
        remove(id);
      }
    },

    clear() {
      entries.clear();
      bySubject.clear();
    },
  };
}

/**
 * Keys may be used from everywhere, but for a few: whether an answer is about
 * a place only the answer tells. So it is kept without its place, and where it
 * depends on that, with as much of it as matters too. What is kept without the
 * place then only tells what matters.
 */
export function remember(
  cache: AnswerCache<GuardAnswer>,
  question: Question,
  entry: NewEntry<GuardAnswer>,
): void {
  cache.set(question.id, entry);
  if (dependsOnPlace(entry.answer)) {
    cache.set(placedId(question, entry.answer), entry);
  }
}

/** What is known of a question, from where it is asked. */
export function recall(
  cache: AnswerCache<GuardAnswer>,
  question: Question,
  now: number,
): GuardAnswer | undefined {
  const answer = cache.get(question.id, now);
  return answer && dependsOnPlace(answer) ? cache.get(placedId(question, answer), now) : answer;
}

function dependsOnPlace({ dependsOnOrigin, dependsOnAddress }: GuardAnswer): boolean {
  return dependsOnOrigin === true || dependsOnAddress === true;
}
