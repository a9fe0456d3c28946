import type { HLJSApi, Language } from "highlight.js";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import go from "highlight.js/lib/languages/go";
import json from "highlight.js/lib/languages/json";
import plaintext from "highlight.js/lib/languages/plaintext";
import python from "highlight.js/lib/languages/python";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const languages = { bash: shell, go, json, plaintext, python, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) {
  hljs.registerLanguage(name, language);
}
hljs.registerAliases("js", { languageName: "typescript" });
hljs.registerAliases("curl", { languageName: "bash" });

/** With few keywords, because others are also arguments, such as in `--type` and `token:read`. */
function shell(api: HLJSApi): Language {
  const keywords = ["export", "if", "then", "fi", "for", "do", "done", "while"];
  return { ...bash(api), keywords };
}

/** Returns code as HTML with classes. The code of an unknown language is only escaped. */
export function highlight(code: string, name: string): string {
  const language = hljs.getLanguage(name) ? name : "plaintext";
  return hljs.highlight(code, { language }).value;
}
