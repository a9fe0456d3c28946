import { defaultKeyHeader } from "../../src/contract/headers.js";
import { keyHeader } from "../common/key-header.js";
import { exampleOrigin } from "./api/operations.js";

/** Example values in the built pages, and their values for this service. */
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
 * except in the API reference, and the output of a started service shows its own.
 */
export function fillInServiceAddress(): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>(`a[href^="${exampleOrigin}"]`)) {
    link.href = fillIn(link.href);
  }
  // The reference contains samples: a text that is replaced twice could repeat its value.
  const texts = new Set<Text>();
  const elements = ".content :is(.code:not(.printed) pre, a), .reference";
  for (const element of document.querySelectorAll(elements)) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      texts.add(walker.currentNode as Text);
    }
  }
  for (const node of texts) {
    const text = fillIn(node.data);
    if (text !== node.data) {
      node.data = text;
    }
  }
}
