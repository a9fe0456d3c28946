/** Gets values by id, and asks for those together that are wanted at once. */
export interface Batch<Value> {
  get(id: string): Promise<Value | undefined>;
}

type Load<Value> = (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>;

/** Milliseconds in which what is asked for counts as asked for at once. */
const moment = 5;

export function createBatch<Value>(most: number, load: Load<Value>): Batch<Value> {
  let wanted = new Set<string>();
  let loading: Promise<ReadonlyMap<string, Value>> | undefined;

  /** Loads what is wanted a moment later. */
  async function begin(): Promise<ReadonlyMap<string, Value>> {
    const ids = wanted;
    await new Promise((resolve) => setTimeout(resolve, moment));
    if (wanted === ids) {
      startAnew();
    }
    return load([...ids]);
  }

  function startAnew(): void {
    wanted = new Set();
    loading = undefined;
  }

  return {
    async get(id) {
      if (wanted.size >= most) {
        startAnew();
      }
      wanted.add(id);
      loading ??= begin();
      return (await loading).get(id);
    },
  };
}
