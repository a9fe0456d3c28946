/** A path as it may be told: a key that was pasted into it, encoded or not, is left out. */
export function withoutSecrets(path: string): string {
  return path.replaceAll(/(?:[A-Za-z0-9]|%[0-9A-Fa-f]{2}){30,}/g, "…");
}
