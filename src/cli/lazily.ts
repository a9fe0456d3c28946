/** What a command does, loaded when it is run: completion and help need none of it. */
export function lazily<Args extends unknown[]>(
  load: () => Promise<(...args: Args) => Promise<void>>,
): (...args: Args) => Promise<void> {
  return async (...args) => (await load())(...args);
}
