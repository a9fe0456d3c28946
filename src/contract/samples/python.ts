import {
  checkUrl,
  headersOf,
  joinLines,
  type Literals,
  printValue,
  type SampleCall,
  type SampleCheck,
  urlOf,
} from "./call.js";

/** A string literal: the escapes of JSON are valid in Python. */
const quote = (text: string) => JSON.stringify(text);

const constants = new Map([
  [true, "True"],
  [false, "False"],
  [null, "None"],
] as const);

const values: Literals = {
  literal: (value) =>
    typeof value === "boolean" || value === null
      ? (constants.get(value) as string)
      : JSON.stringify(value),
  name: quote,
  padding: "",
  lastComma: ",",
  indent: "    ",
};

export function pythonCall(call: SampleCall): string {
  const { method, body, form } = call;
  return joinLines(
    body !== undefined && "import json",
    call.key === undefined && "import os",
    "import urllib.error",
    form !== undefined && "import urllib.parse",
    "import urllib.request",
    "",
    "request = urllib.request.Request(",
    `    ${quote(urlOf(call))},`,
    `    method=${quote(method)},`,
    ...headerArgument(call),
    body !== undefined && `    data=json.dumps(${printValue(body, values, "    ")}).encode(),`,
    form !== undefined &&
      `    data=urllib.parse.urlencode(${printValue(form, values, "    ")}).encode(),`,
    ")",
    "try:",
    "    with urllib.request.urlopen(request) as response:",
    "        print(response.read().decode())",
    "except urllib.error.HTTPError as error:",
    '    raise SystemExit(f"{error.code} {error.read().decode()}")',
  );
}

export function pythonCheck(check: SampleCheck): string {
  return joinLines(
    "import json",
    "import os",
    "import urllib.error",
    "import urllib.request",
    "",
    "# The key that a caller sent to your service.",
    'caller_key = os.environ["CALLER_KEY"]',
    "request = urllib.request.Request(",
    `    ${quote(checkUrl(check))},`,
    '    method="POST",',
    ...headerArgument({ ...check, method: "POST", body: {} }),
    "    data=json.dumps({",
    '        "key": caller_key,',
    `        "permission": ${quote(check.permission)},`,
    "    }).encode(),",
    ")",
    "try:",
    "    with urllib.request.urlopen(request) as response:",
    "        decision = json.load(response)",
    "except urllib.error.HTTPError as error:",
    '    raise SystemExit(json.load(error)["detail"])',
    'print("allowed" if decision["allowed"] else "denied: " + decision["reason"])',
  );
}

function headerArgument(call: Omit<SampleCall, "path">): string[] {
  const headers = headersOf(call).map(([name, value]) => {
    const text = value === undefined ? 'os.environ["SVC_API_KEY"]' : quote(value);
    return `        ${quote(name)}: ${text},`;
  });
  return headers.length === 0 ? [] : ["    headers={", ...headers, "    },"];
}
