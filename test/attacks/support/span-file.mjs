/**
 * Loaded into a process before its program. Registers a tracer that appends all
 * there is in each span to the file that SPAN_FILE names, with the id of the
 * process behind it.
 */
import { appendFileSync } from "node:fs";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";

const path = `${process.env.SPAN_FILE}.${process.pid}`;

const contextOf = (context) =>
  context && { ...context, traceState: context.traceState?.serialize() };

/** What an exporter may send of a span. */
const toldOf = (span) => ({
  ...{ name: span.name, attributes: span.attributes, status: span.status, events: span.events },
  links: span.links.map(({ context, ...link }) => ({ ...link, context: contextOf(context) })),
  context: contextOf(span.spanContext()),
  parent: contextOf(span.parentSpanContext),
  resource: span.resource.attributes,
});

const exporter = {
  export(spans, done) {
    appendFileSync(path, spans.map((span) => `${JSON.stringify(toldOf(span))}\n`).join(""));
    done({ code: 0 });
  },
  shutdown: async () => {},
};

new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
