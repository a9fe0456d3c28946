import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js";
import {
  createKeyMasking,
  exampleHints,
  layout,
  markdown,
  pathsWithoutLinks,
} from "./swagger-plugins.js";
import "./reference.css";

/** Shows the OpenAPI document of this service. Keys stay in memory. */
export function showReference(container: HTMLElement, keyHeader: string): void {
  fixAccessibility(container);
  SwaggerUI({
    domNode: container,
    url: "/openapi.json",
    layout: "ReferenceLayout",
    plugins: [layout, markdown, pathsWithoutLinks, exampleHints, createKeyMasking(keyHeader)],
    // The default validator is on another host.
    validatorUrl: null,
    deepLinking: true,
    filter: true,
    tryItOutEnabled: true,
    persistAuthorization: false,
    displayRequestDuration: true,
    showExtensions: true,
    defaultModelsExpandDepth: 0,
    onComplete: () => container.setAttribute("aria-busy", "false"),
  });
}

/** Attributes that Swagger UI is missing for screen readers and keyboards. */
const fixes: readonly (readonly [selector: string, attribute: string, value: string])[] = [
  [".close-modal", "aria-label", "Close"],
  [".auth-btn-wrapper .authorize[type=submit]", "aria-label", "Authorize"],
  [".auth-btn-wrapper [aria-label='Remove authorization']", "aria-label", "Logout"],
  [".operation-filter-input", "aria-label", "Filter by tag or path"],
  [".examples-select-element", "aria-label", "Example"],
  ["textarea.body-param__text", "aria-label", "Request body"],
  ["pre.microlight, pre.curl, .microlight.example", "tabindex", "0"],
];

function fixAccessibility(container: HTMLElement): void {
  const applyFixes = () => {
    for (const [selector, attribute, value] of fixes) {
      for (const element of container.querySelectorAll(selector)) {
        if (element.getAttribute(attribute) !== value) {
          element.setAttribute(attribute, value);
        }
      }
    }
  };
  new MutationObserver(applyFixes).observe(container, { childList: true, subtree: true });
}
