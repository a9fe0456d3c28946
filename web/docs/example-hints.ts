import type { Plugin } from "swagger-ui-dist/swagger-ui-es-bundle.js";

interface FormProps {
  /** What stands in the field while nothing is entered. */
  readonly description?: string;
  readonly schema?: { getIn(path: readonly (string | number)[]): unknown };
}

/** Shows in an empty field what it could hold: Swagger UI knows only examples that it fills in. */
export const exampleHints: Plugin = ({ React: { createElement } }) => ({
  wrapComponents: {
    JsonSchemaForm: (Original) => (props: FormProps) => {
      const example = props.schema?.getIn(["examples", 0]);
      const hint = example === undefined ? {} : { description: `for example ${example}` };
      return createElement(Original, { ...props, ...hint });
    },
  },
});
