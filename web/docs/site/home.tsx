import { renderToStaticMarkup } from "react-dom/server";
import { createGuardSamples } from "../../../src/contract/samples/samples.js";
import { SampleTabs } from "../api/elements.js";
import { exampleOrigin } from "../api/operations.js";
import type { Page } from "./layout.js";
import type { RenderedMarkdown } from "./markdown.js";
import type { NavigationGroup } from "./navigation.js";

/** The contents, with the introduction beside a sample. Their items are shown as cards. */
export function createHomePage(
  contents: RenderedMarkdown,
  sidebar: readonly NavigationGroup[],
): Page {
  const [introduction = "", ...groups] = contents.html.split(/(?=<h2)/);
  return {
    ...contents,
    html:
      renderToStaticMarkup(<Hero introduction={introduction} />) + removeColons(groups.join("")),
    url: "/docs",
    sidebar,
    headings: [],
    kind: "home",
  };
}

const guardSamples = createGuardSamples({ origin: exampleOrigin, permission: "token:read" });

/** The pages of a group, as cards: the parent of their URLs. */
export function createGroupPage(
  { html, ...contents }: RenderedMarkdown,
  url: string,
  sidebar: readonly NavigationGroup[],
): Page {
  return {
    ...{ ...contents, html: removeColons(html), url, sidebar },
    ...{ headings: [], sections: [], kind: "home" },
  };
}

/** A card has a title and a text. */
function removeColons(html: string): string {
  return html.replaceAll("</a>: ", "</a> ");
}

function Hero({ introduction }: { readonly introduction: string }) {
  return (
    <div className="hero">
      <div>
        {/* biome-ignore lint/security/noDangerouslySetInnerHtml: built from a file of this repository. */}
        <div className="hero-text" dangerouslySetInnerHTML={{ __html: introduction }} />
        <p className="hero-links">
          <a className="button primary" href="/docs/get-started">
            Get started
          </a>
          <a className="button" href="/docs/api">
            API reference
          </a>
          <a className="button" href="/console">
            Open the console
          </a>
        </p>
      </div>
      <div className="hero-code">
        <p className="hero-caption">Check the key of a caller</p>
        <SampleTabs samples={guardSamples} />
      </div>
    </div>
  );
}
