/**
 * A buf plugin that writes the reference of the contract, as Markdown and as
 * the body of a page, from the comments that the OpenAPI document is made from.
 */
import { createEcmaScriptPlugin, runNodeJs } from "@bufbuild/protoplugin";
import { toHtml } from "./html.js";
import { toMarkdown } from "./markdown.js";
import { createReference } from "./reference.js";

const notice = "<!-- Made by tools/proto-reference from the protos. Do not edit. -->";

const plugin = createEcmaScriptPlugin({
  name: "proto-reference",
  version: "1",
  generateTs(schema) {
    const blocks = createReference(schema);
    schema.generateFile("proto.md").print(`${notice}\n\n${toMarkdown(blocks)}`.trimEnd());
    schema.generateFile("proto.html").print(`${notice}\n${toHtml(blocks)}`.trimEnd());
  },
});

runNodeJs(plugin);
