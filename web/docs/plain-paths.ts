import type { ReactNode } from "react";
import type { Plugin } from "swagger-ui-dist/swagger-ui-es-bundle.js";

interface DeepLinkProps {
  readonly text?: ReactNode;
}

/**
 * Shows the path of an operation as a text. Swagger UI would make it a link
 * within the button that opens the operation, which assistive technology
 * cannot tell apart. Opening puts the same link into the address bar.
 */
export const plainPaths: Plugin = ({ React: { createElement } }) => ({
  wrapComponents: {
    DeepLink:
      () =>
      ({ text }: DeepLinkProps) =>
        createElement("span", null, text),
  },
});
