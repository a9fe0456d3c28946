import { readFileSync } from "node:fs";

/** The commands on a page that stand below a label, `<!-- tour: curl -->`, in order, as one script. */
export function scriptIn(page: string, label: string): string {
  const blocks = readFileSync(page, "utf8").matchAll(/<!-- (\w+: \w+) -->\n```sh\n(.*?)```/gs);
  const scripts = [...blocks].flatMap(([, name, script]) => (name === label ? [script] : []));
  if (scripts.length === 0) {
    throw new Error(`${page} has no commands that are labelled "${label}".`);
  }
  return scripts.join("\n");
}
