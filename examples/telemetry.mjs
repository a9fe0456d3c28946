/**
 * Sends Latchkey spans to an OpenTelemetry collector:
 *
 *     npm install @opentelemetry/sdk-trace-node @opentelemetry/exporter-trace-otlp-http
 *     OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 \
 *       NODE_OPTIONS='--import ./examples/telemetry.mjs' npx latchkey serve
 *
 * Without an endpoint, spans go to stdout. To sample one call in a hundred,
 * and all calls with a sampled parent, set
 * OTEL_TRACES_SAMPLER=parentbased_traceidratio and OTEL_TRACES_SAMPLER_ARG=0.01.
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

// Flush pending spans on shutdown.
process.once("beforeExit", () => provider.shutdown());
