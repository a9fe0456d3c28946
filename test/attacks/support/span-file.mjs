/**
 * Preloaded into a process. Registers a tracer that appends each span to
 * `$SPAN_FILE.<pid>`.
 */
import { appendFileSync } from "node:fs";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";

const path = `${process.env.SPAN_FILE}.${process.pid}`;

const serializeContext = (context) =>
  context && { ...context, traceState: context.traceState?.serialize() };

/** All parts of a span that an exporter may send. */
const serializeSpan = (span) => ({
  name: span.name,
  attributes: span.attributes,
  status: span.status,
  events: span.events,
  links: span.links.map(({ context, ...link }) => ({
    ...link,
    context: serializeContext(context),
  })),
  context: serializeContext(span.spanContext()),
  parent: serializeContext(span.parentSpanContext),
  resource: span.resource.attributes,
});

const exporter = {
  export(spans, done) {
    appendFileSync(path, spans.map((span) => `${JSON.stringify(serializeSpan(span))}\n`).join(""));
    done({ code: 0 });
  },
  shutdown: async () => {},
};

new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
