/** How many changes are remembered at least. */
const remembered = 1_000;

/**
 * Remembers what changed of late, to tell whether an answer that was under way
 * meanwhile can be kept. Where it no longer knows it says that all changed.
 */
export interface ChangeMemory {
  /** How many changes there were; {@link since} tells what came after such a number. */
  count(): number;

  /** Whether one of these subjects may have changed since. */
  since(count: number, subjects: readonly (string | undefined)[]): boolean;

  add(subject: string): void;

  /** Notes that anything may have changed. */
  addAll(): void;
}

export function createChangeMemory(): ChangeMemory {
  let total = 0;
  let recent: string[] = [];
  return {
    count: () => total,

    since(count, subjects) {
      const news = total - count;
      return (
        news > recent.length ||
        recent.slice(recent.length - news).some((subject) => subjects.includes(subject))
      );
    },

    add(subject) {
      total++;
      recent.push(subject);
      if (recent.length > 2 * remembered) {
        recent = recent.slice(-remembered);
      }
    },

    addAll() {
      total++;
      recent = [];
    },
  };
}
