import type { StoreSettings } from "../config/settings.js";
import type { Tracing } from "./tracing.js";

/** Where every copy of the API of OpenTelemetry looks for what is registered with it. */
const registrations = Symbol.for("opentelemetry.js.api.1");

/** Tracing, where a tracer is registered: otherwise not even the API is loaded. */
export async function loadTracing(store: StoreSettings["kind"]): Promise<Tracing | undefined> {
  if (!(registrations in globalThis)) {
    return undefined;
  }
  const { createTracing } = await import("./spans.js");
  return createTracing(store);
}
