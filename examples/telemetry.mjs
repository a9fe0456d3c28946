/**
 * Exports the spans of Latchkey to an OpenTelemetry collector:
 *
 *     npm install @opentelemetry/sdk-trace-node @opentelemetry/exporter-trace-otlp-http
 *     OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 \
 *       NODE_OPTIONS='--import ./telemetry.mjs' npx latchkey serve
 *
 * Without an endpoint, spans are written to stdout. Set
 * OTEL_TRACES_SAMPLER=parentbased_traceidratio and OTEL_TRACES_SAMPLER_ARG=0.01
 * to trace one call in a hundred, and the calls that callers trace.
 */
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  NodeTracerProvider,
} from "@opentelemetry/sdk-trace-node";

async function createExporter() {
  if (!process.env.OTEL_EXPORTER_OTLP_ENDPOINT) {
    return new ConsoleSpanExporter();
  }
  const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http");
  return new OTLPTraceExporter();
}

const provider = new NodeTracerProvider({
  spanProcessors: [new BatchSpanProcessor(await createExporter())],
});
provider.register();

// Sends buffered spans when the service has stopped.
process.once("beforeExit", () => provider.shutdown());
