const place = "latchkey-key";

/**
 * Where the person asks for it, the key is kept for this tab alone, until it
 * is closed: never where other tabs, or a later visit, would find it.
 */
export const keptKey = {
  read: (): string | undefined => sessionStorage.getItem(place) ?? undefined,
  keep: (key: string): void => sessionStorage.setItem(place, key),
  forget: (): void => sessionStorage.removeItem(place),
};
