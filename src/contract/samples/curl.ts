import {
  checkUrl,
  headersOf,
  json,
  printValue,
  type SampleCall,
  type SampleCheck,
  urlOf,
} from "./call.js";

export function curlCall(call: SampleCall): string {
  const { method, body, form } = call;
  const isDefaultMethod = method === (body === undefined && !form ? "GET" : "POST");
  return join([
    `curl ${isDefaultMethod ? "" : `-X ${method} `}${quoteForShell(urlOf(call))}`,
    ...headerOptions({ ...call, form: undefined }),
    ...(body === undefined ? [] : [`-d ${quoteForShell(printValue(body, json, "  "))}`]),
    ...Object.entries(form ?? {}).map(
      ([name, value]) =>
        `--data-urlencode ${quoteForShell(`${encodeURIComponent(name)}=${value}`)}`,
    ),
  ]);
}

export function curlCheck(check: SampleCheck): string {
  // The shell joins adjacent strings.
  const key = `"'"$CALLER_KEY"'"`;
  const permission = quoteForShell(JSON.stringify(check.permission)).slice(1, -1);
  return join([
    `curl ${quoteForShell(checkUrl(check))}`,
    ...headerOptions({ ...check, method: "POST", body: {} }),
    `-d '{ "key": ${key}, "permission": ${permission} }'`,
  ]);
}

function headerOptions(call: Omit<SampleCall, "path">): string[] {
  return headersOf(call).map(([name, value]) => {
    if (value !== undefined) {
      return `-H ${quoteForShell(`${name}: ${value}`)}`;
    }
    // In double quotes, a shell expands some characters that a header name may contain.
    return /^[\w.-]+$/.test(name)
      ? `-H "${name}: $SVC_API_KEY"`
      : `-H ${quoteForShell(`${name}: `)}"$SVC_API_KEY"`;
  });
}

/** Quotes a word for a shell. */
function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Quotes a word only if a shell would change it. */
export function quoteIfNeeded(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : quoteForShell(word);
}

function join(options: readonly string[]): string {
  return options.join(" \\\n  ");
}
