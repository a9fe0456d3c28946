import type { ComponentType } from "react";
import type { Plugin } from "swagger-ui-dist/swagger-ui-es-bundle.js";

interface LayoutProps {
  /** With `true`, a component that knows what is shown. */
  getComponent(name: string, isConnected?: boolean): ComponentType;
  readonly specSelectors: { loadingStatus(): string };
}

/** What stands on the page, from top to bottom. There is one server, this one: it need not be chosen. */
export const layout: Plugin = ({ React: { createElement } }) => ({
  components: {
    ReferenceLayout: ({ getComponent, specSelectors }: LayoutProps) => {
      const status = specSelectors.loadingStatus();
      if (status === "failed" || status === "failedConfig") {
        return createElement(
          "p",
          { className: "notice", role: "alert" },
          "The description of the API cannot be loaded from /openapi.json. Reload the page.",
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
