/** One named value in the storage of the browser. */
export interface StoredValue {
  read(): string | undefined;
  write(text: string): void;
  remove(): void;
}

/** If storage is blocked, reads return nothing and writes are ignored. */
export function openStorage(kind: "localStorage" | "sessionStorage", name: string): StoredValue {
  function attempt<T>(use: (storage: Storage) => T): T | undefined {
    try {
      return use(window[kind]);
    } catch {
      return undefined;
    }
  }
  return {
    read: () => attempt((storage) => storage.getItem(name)) ?? undefined,
    write: (text) => attempt((storage) => storage.setItem(name, text)),
    remove: () => attempt((storage) => storage.removeItem(name)),
  };
}
