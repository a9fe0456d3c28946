import type { ComponentType, ReactNode } from "react";
import type { Plugin, System } from "swagger-ui-dist/swagger-ui-es-bundle.js";
import { gatewayKeyHeader } from "../../../src/contract/headers.js";

/** Swagger UI plugins for the API reference. */

interface LayoutProps {
  /** With `true`, the component is connected to the state. */
  getComponent(name: string, isConnected?: boolean): ComponentType;
  readonly specSelectors: { loadingStatus(): string };
}

/** The page layout, without the server selection. */
export const layout: Plugin = ({ React: { createElement } }) => ({
  components: {
    ReferenceLayout: ({ getComponent, specSelectors }: LayoutProps) => {
      const status = specSelectors.loadingStatus();
      if (status === "failed" || status === "failedConfig") {
        return createElement(
          "p",
          { className: "notice", role: "alert" },
          "Could not load /openapi.json. Reload the page.",
        );
      }
      const show = (name: string) => createElement(getComponent(name, true));
      return createElement(
        "div",
        { className: "swagger-ui" },
        createElement(getComponent("SvgAssets")),
        show("InfoContainer"),
        createElement("h2", null, "Operations"),
        createElement(
          "div",
          { className: "tools" },
          show("FilterContainer"),
          show("AuthorizeBtnContainer"),
        ),
        show("operations"),
        show("Models"),
      );
    },
  },
});

interface MarkdownProps {
  readonly source?: string;
  readonly className?: string;
}

/**
 * Renders paragraphs, lists, `code` and **strong**. The renderer of Swagger UI
 * sets inner HTML, which the content security policy forbids.
 */
export const markdown: Plugin = ({ React: { createElement } }) => ({
  wrapComponents: {
    Markdown:
      () =>
      ({ source = "", className = "" }: MarkdownProps) =>
        source &&
        createElement(
          "div",
          { className: `markdown ${className}` },
          ...source.split("\n\n").map((block) => showBlock(createElement, block)),
        ),
  },
});

type CreateElement = System["React"]["createElement"];

function showBlock(createElement: CreateElement, block: string): ReactNode {
  if (!block.startsWith("- ")) {
    return createElement("p", null, ...showMarks(createElement, block));
  }
  const items = block.split("\n").map((line) => line.slice(2));
  return createElement(
    "ul",
    null,
    ...items.map((item) => createElement("li", null, ...showMarks(createElement, item))),
  );
}

function showMarks(createElement: CreateElement, text: string): ReactNode[] {
  // Splitting by a pattern with a group keeps the matches.
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`")) {
      return createElement("code", null, part.slice(1, -1));
    }
    return part.startsWith("**") ? createElement("strong", null, part.slice(2, -2)) : part;
  });
}

interface DeepLinkProps {
  readonly text?: ReactNode;
}

/**
 * Renders operation paths as text. Swagger UI renders a link inside a button,
 * which is not accessible. Opening an operation updates the URL anyway.
 */
export const pathsWithoutLinks: Plugin = ({ React: { createElement } }) => ({
  wrapComponents: {
    DeepLink:
      () =>
      ({ text }: DeepLinkProps) =>
        createElement("span", null, text),
  },
});

interface FormProps {
  /** The placeholder. */
  readonly description?: string;
  readonly schema?: { getIn(path: readonly (string | number)[]): unknown };
}

/** Shows examples as placeholders. Swagger UI would fill them in. */
export const exampleHints: Plugin = ({ React: { createElement } }) => ({
  wrapComponents: {
    JsonSchemaForm: (Original) => (props: FormProps) => {
      const example = props.schema?.getIn(["examples", 0]);
      const hint = example === undefined ? {} : { description: `for example ${example}` };
      return createElement(Original, { ...props, ...hint });
    },
  },
});

interface InputProps {
  readonly id?: string;
}

/** An immutable request of Swagger UI. */
interface Request {
  hasIn(path: readonly string[]): boolean;
  setIn(path: readonly string[], value: string): Request;
}

interface CurlProps {
  readonly request: Request;
}

/** Masks keys in their inputs and in the curl command: of a caller, and of a gateway. */
export function createKeyMasking(keyHeader: string): Plugin {
  const paths = [keyHeader, gatewayKeyHeader].map((name) => ["headers", name]);
  const mask = (request: Request, path: readonly string[]) =>
    request.hasIn(path) ? request.setIn(path, "…") : request;
  return ({ React: { createElement } }) => ({
    wrapComponents: {
      Input: (Original) => (props: InputProps) =>
        createElement(
          Original,
          props.id === "api_key_value"
            ? { ...props, type: "password", autoComplete: "off" }
            : props,
        ),
      curl:
        (Original) =>
        ({ request, ...props }: CurlProps) =>
          createElement(Original, {
            ...props,
            request: paths.reduce(mask, request),
          }),
    },
  });
}
