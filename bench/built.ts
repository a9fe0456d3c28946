/**
 * Loads a module of Latchkey as it is deployed, for what is measured inside of
 * a process of the benchmark: what tsx makes of the sources does more for each
 * function.
 */
export function loadBuilt<Module>(path: string): Promise<Module> {
  return import(new URL(`../dist/src/${path}`, import.meta.url).href);
}
