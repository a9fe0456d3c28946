import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js";
import { exampleHints } from "./example-hints.js";
import { createHiddenKey } from "./hidden-key.js";
import { layout } from "./layout.js";
import { nameControls } from "./name-controls.js";
import { plainMarkdown } from "./plain-markdown.js";
import { plainPaths } from "./plain-paths.js";
import "./styles/reference.css";

/** Shows the OpenAPI document of this service. Keys are kept nowhere but in memory. */
export function showReference(place: HTMLElement, keyHeader: string): void {
  nameControls(place);
  SwaggerUI({
    domNode: place,
    url: "/openapi.json",
    layout: "ReferenceLayout",
    plugins: [layout, plainMarkdown, plainPaths, exampleHints, createHiddenKey(keyHeader)],
    // It would send the document to another host.
    validatorUrl: null,
    deepLinking: true,
    filter: true,
    tryItOutEnabled: true,
    persistAuthorization: false,
    displayRequestDuration: true,
    showExtensions: true,
    defaultModelsExpandDepth: 0,
    onComplete: () => place.setAttribute("aria-busy", "false"),
  });
}
