import type { Plugin } from "swagger-ui-dist/swagger-ui-es-bundle.js";

interface InputProps {
  readonly id?: string;
}

/** A request as Swagger UI keeps it. */
interface Request {
  hasIn(path: readonly string[]): boolean;
  setIn(path: readonly string[], value: string): Request;
}

interface CurlProps {
  readonly request: Request;
}

/** Keeps the key from being read over the shoulder: as it is typed, and in the command that is shown. */
export function createHiddenKey(keyHeader: string): Plugin {
  const place = ["headers", keyHeader];
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
            request: request.hasIn(place) ? request.setIn(place, "…") : request,
          }),
    },
  });
}
