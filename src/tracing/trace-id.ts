/** The id of the trace that a caller names, in the form of the W3C, if it names one. */
export function traceIdIn(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== "string") {
    return undefined;
  }
  const [, id] =
    /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(traceparent) ?? [];
  return id;
}
