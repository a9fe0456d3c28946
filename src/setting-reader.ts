import type { Parser } from "./setting-parsers.js";

/** Reads variables, and gathers all that is wrong with them. */
export interface SettingReader {
  /** The value of a variable, or `undefined` where it is unset, empty or wrong. */
  <T>(name: string, parse: Parser<T>): T | undefined;
  isSet(name: string): boolean;
  /** Those that were found so far, for others to add to. */
  readonly problems: string[];
}

export function createSettingReader(environment: Readonly<NodeJS.Dict<string>>): SettingReader {
  const problems: string[] = [];
  const isSet = (name: string) => (environment[name] ?? "") !== "";
  function read<T>(name: string, parse: Parser<T>): T | undefined {
    if (!isSet(name)) {
      return undefined;
    }
    try {
      return parse(environment[name] ?? "");
    } catch (error) {
      problems.push(`${name} ${(error as Error).message}`);
      return undefined;
    }
  }
  return Object.assign(read, { isSet, problems });
}
