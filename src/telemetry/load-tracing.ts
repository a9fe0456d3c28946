import type { StoreSettings } from "../config/settings.js";
import type { Tracing } from "./tracing.js";

/** The global under which every copy of the OpenTelemetry API finds the registered providers. */
const registrations = Symbol.for("opentelemetry.js.api.1");

/** Loads tracing only if a tracer is registered, so that the API costs nothing otherwise. */
export async function loadTracing(store: StoreSettings["kind"]): Promise<Tracing | undefined> {
  if (!(registrations in globalThis)) {
    return undefined;
  }
  const { createTracing } = await import("./tracing.js");
  return createTracing(store);
}
