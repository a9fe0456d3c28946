/** What a page may keep in the browser, under one name. */
export interface Kept {
  read(): string | undefined;
  keep(text: string): void;
  forget(): void;
}

/** Browsers can be told to let pages keep nothing: then nothing is there, and nothing kept. */
export function openStorage(kind: "localStorage" | "sessionStorage", name: string): Kept {
  function attempt<T>(use: (storage: Storage) => T): T | undefined {
    try {
      return use(window[kind]);
    } catch {
      return undefined;
    }
  }
  return {
    read: () => attempt((storage) => storage.getItem(name)) ?? undefined,
    keep: (text) => attempt((storage) => storage.setItem(name, text)),
    forget: () => attempt((storage) => storage.removeItem(name)),
  };
}
