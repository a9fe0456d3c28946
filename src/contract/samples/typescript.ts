import { defaultKeyHeader } from "../headers.js";
import {
  headersOf,
  joinLines,
  type Literals,
  printValue,
  type SampleCall,
  type SampleCheck,
  urlOf,
} from "./call.js";

const quote = (text: string) => JSON.stringify(text);

/** The lines that read a variable, without which the program cannot go on. */
const readVariable = (constant: string, variable: string, value: string) => [
  `const ${constant} = process.env.${variable};`,
  `if (!${constant}) {`,
  `  throw new Error("Set ${variable} to ${value}.");`,
  "}",
];

const values: Literals = {
  literal: JSON.stringify,
  name: propertyName,
  padding: " ",
  lastComma: ",",
  indent: "  ",
};

export function typeScriptCall(call: SampleCall): string {
  const { method, body, form } = call;
  // URLSearchParams sets the content type.
  const headers = headersOf({ ...call, form: undefined });
  const readsKey = headers.some(([, value]) => value === undefined);
  const options = [
    ...(method === "GET" ? [] : [`  method: ${quote(method)},`]),
    ...(headers.length === 0 ? [] : ["  headers: {"]),
    ...headers.map(
      ([name, value]) =>
        `    ${propertyName(name)}: ${value === undefined ? "key" : quote(value)},`,
    ),
    ...(headers.length === 0 ? [] : ["  },"]),
    ...(body === undefined ? [] : [`  body: JSON.stringify(${printValue(body, values, "  ")}),`]),
    ...(form ? [`  body: new URLSearchParams(${printValue(form, values, "  ")}),`] : []),
  ];
  const url = quote(urlOf(call));
  return joinLines(
    ...(readsKey ? readVariable("key", "SVC_API_KEY", "your key") : []),
    `const response = await fetch(${url}${options.length === 0 ? ");" : ", {"}`,
    ...options,
    options.length > 0 && "});",
    "const text = await response.text();",
    "if (!response.ok) {",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the program contains the template.
    "  throw new Error(`${response.status} ${text}`);",
    "}",
    "console.log(text);",
  );
}

export function typeScriptGuard({ origin, key, keyHeader, permission }: SampleCheck): string {
  return joinLines(
    'import { createGuard } from "latchkey/client";',
    "",
    "const guard = createGuard({",
    `  url: ${quote(origin)},`,
    `  key: ${key === undefined ? "process.env.SVC_API_KEY" : quote(key)},`,
    keyHeader !== undefined &&
      keyHeader !== defaultKeyHeader &&
      `  keyHeader: ${quote(keyHeader)},`,
    "});",
    "",
    "// The key that a caller sent to your service.",
    ...readVariable("callerKey", "CALLER_KEY", "the key of a caller"),
    "const { allowed, reason } = await guard.check(",
    "  callerKey,",
    `  ${quote(permission)},`,
    ");",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the program contains the template.
    'console.log(allowed ? "allowed" : `denied: ${reason}`);',
    "await guard.close();",
  );
}

function propertyName(name: string): string {
  if (name === "__proto__") {
    // As a plain name, it would set the prototype.
    return '["__proto__"]';
  }
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name);
}
