import { defaultKeyHeader } from "../../src/contract/headers.js";
import { keyHeader } from "../common/key-header.js";
import { exampleOrigin } from "./api/operations.js";

/** What the built pages contain, and what this service has instead. */
const replacements: Readonly<Record<string, string>> = {
  [exampleOrigin]: location.origin,
  [new URL(exampleOrigin).host]: location.host,
  [defaultKeyHeader]: keyHeader,
};
const pattern = new RegExp(Object.keys(replacements).join("|"), "g");

function fillIn(text: string): string {
  return text.replaceAll(pattern, (found) => replacements[found] ?? found);
}

/**
 * Replaces the example origin and key header in samples and links. Other texts state defaults,
 * except in the API reference.
 */
export function fillInServiceAddress(): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>(`a[href^="${exampleOrigin}"]`)) {
    link.href = fillIn(link.href);
  }
  for (const element of document.querySelectorAll(".content :is(pre, a), .reference")) {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const node = texts.currentNode as Text;
      const text = fillIn(node.data);
      if (text !== node.data) {
        node.data = text;
      }
    }
  }
}
