import type { SampleCall, SampleCheck } from "./call.js";
import { curlCall, curlCheck } from "./curl.js";
import { goCall, goCheck } from "./go.js";
import { pythonCall, pythonCheck } from "./python.js";
import { typeScriptCall, typeScriptGuard } from "./typescript.js";

export type SampleLanguage = "curl" | "typescript" | "go" | "python";

/** A complete program, for the console, the documentation and the command line. */
export interface Sample {
  readonly language: SampleLanguage;
  /** The name of the language, for people. */
  readonly label: string;
  readonly code: string;
}

/** Creates programs that make a REST call and print the response. */
export function createSamples(call: SampleCall): Sample[] {
  return [
    { language: "curl", label: "curl", code: curlCall(call) },
    { language: "typescript", label: "TypeScript", code: typeScriptCall(call) },
    { language: "go", label: "Go", code: goCall(call) },
    { language: "python", label: "Python", code: pythonCall(call) },
  ];
}

/**
 * Creates programs that check whether the key in the variable CALLER_KEY has a permission: in
 * TypeScript with the guard of `latchkey/client`, in other languages with `POST /access/check`.
 * Their own key needs the permission `access:check`.
 */
export function createGuardSamples(check: SampleCheck): Sample[] {
  return [
    { language: "typescript", label: "TypeScript", code: typeScriptGuard(check) },
    { language: "curl", label: "curl", code: curlCheck(check) },
    { language: "go", label: "Go", code: goCheck(check) },
    { language: "python", label: "Python", code: pythonCheck(check) },
  ];
}
