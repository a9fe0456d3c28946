import {
  checkUrl,
  headersOf,
  joinLines,
  json,
  printValue,
  type SampleCall,
  type SampleCheck,
  urlOf,
} from "./call.js";

export function goCall(call: SampleCall): string {
  const { method, body, form } = call;
  const hasBody = body !== undefined || form !== undefined;
  const text = form ? quote(new URLSearchParams(form).toString()) : rawJson(body ?? null);
  return joinLines(
    "package main",
    "",
    "import (",
    '\t"fmt"',
    '\t"io"',
    '\t"log"',
    '\t"net/http"',
    call.key === undefined && '\t"os"',
    hasBody && '\t"strings"',
    ")",
    "",
    "func main() {",
    hasBody && `\tbody := strings.NewReader(${text})`,
    `\trequest, err := http.NewRequest(${quote(method)}, ${quote(urlOf(call))}, ${hasBody ? "body" : "nil"})`,
    ...exitOnError,
    ...setHeaders(call),
    "\tresponse, err := http.DefaultClient.Do(request)",
    ...exitOnError,
    "\tdefer response.Body.Close()",
    "\tdata, err := io.ReadAll(response.Body)",
    ...exitOnError,
    "\tif response.StatusCode >= 400 {",
    '\t\tlog.Fatalf("%s %s", response.Status, data)',
    "\t}",
    "\tfmt.Println(string(data))",
    "}",
  );
}

export function goCheck(check: SampleCheck): string {
  return joinLines(
    "package main",
    "",
    "import (",
    '\t"bytes"',
    '\t"encoding/json"',
    '\t"fmt"',
    '\t"log"',
    '\t"net/http"',
    '\t"os"',
    ")",
    "",
    "func main() {",
    "\t// The key that a caller sent to your service.",
    '\tcallerKey := os.Getenv("CALLER_KEY")',
    "\tbody, err := json.Marshal(map[string]string{",
    '\t\t"key":        callerKey,',
    `\t\t"permission": ${quote(check.permission)},`,
    "\t})",
    ...exitOnError,
    `\trequest, err := http.NewRequest("POST", ${quote(checkUrl(check))}, bytes.NewReader(body))`,
    ...exitOnError,
    ...setHeaders({ ...check, method: "POST", body: {} }),
    "\tresponse, err := http.DefaultClient.Do(request)",
    ...exitOnError,
    "\tdefer response.Body.Close()",
    "\tvar decision struct {",
    '\t\tAllowed bool   `json:"allowed"`',
    '\t\tReason  string `json:"reason"`',
    '\t\tDetail  string `json:"detail"`',
    "\t}",
    "\tif err := json.NewDecoder(response.Body).Decode(&decision); err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tif response.StatusCode >= 400 {",
    "\t\tlog.Fatal(decision.Detail)",
    "\t}",
    "\tif decision.Allowed {",
    '\t\tfmt.Println("allowed")',
    "\t} else {",
    '\t\tfmt.Println("denied:", decision.Reason)',
    "\t}",
    "}",
  );
}

const exitOnError = ["\tif err != nil {", "\t\tlog.Fatal(err)", "\t}"];

function setHeaders(call: Omit<SampleCall, "path">): string[] {
  return headersOf(call).map(([name, value]) => {
    const text = value === undefined ? 'os.Getenv("SVC_API_KEY")' : quote(value);
    return `\trequest.Header.Set(${quote(name)}, ${text})`;
  });
}

/** JSON in backquotes, without the characters that are not allowed there. */
function rawJson(body: unknown): string {
  const text = printValue(body, json, "\t");
  const escaped = text.replaceAll("`", "\\u0060").replaceAll("\ufeff", "\\ufeff");
  return `\`${escaped}\``;
}

/** A string literal: the escapes of JSON are valid in Go. */
function quote(text: string): string {
  return JSON.stringify(text).replaceAll("\ufeff", "\\ufeff");
}
