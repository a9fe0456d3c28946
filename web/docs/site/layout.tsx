import { ArrowLeft, ArrowRight, Menu, Monitor, Moon, Search, Sun, X } from "lucide-react";
import type { ReactNode } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { MethodBadge } from "../api/elements.js";
import type { Heading, Section } from "./markdown.js";
import type { NavigationGroup, NavigationLink } from "./navigation.js";

/** A page of the site. */
export interface Page {
  readonly url: string;
  readonly title: string;
  readonly summary: string;
  /** The content of the main element. */
  readonly html: string;
  readonly sidebar: readonly NavigationGroup[];
  /** The noun for the links that the filter of the sidebar finds, for example "operations". Absent without a filter. */
  readonly filter?: string | undefined;
  /** The link in the sidebar that is marked, if it is not the page itself. */
  readonly parent?: string | undefined;
  /** The headings for "On this page". */
  readonly headings?: readonly Heading[] | undefined;
  /** The sections that search finds, if the page has a group of results. */
  readonly sections?: readonly Section[] | undefined;
  readonly group?: string | undefined;
  readonly previous?: NavigationLink | undefined;
  readonly next?: NavigationLink | undefined;
  /** A class of the body, for the styles of one kind of page. */
  readonly kind?: string | undefined;
  /** The script of the page, if it is not that of every page. */
  readonly script?: string | undefined;
}

/** The URLs of the built files. */
export interface PageAssets {
  readonly script: string;
  readonly styles: readonly string[];
  readonly logo: string;
  readonly searchIndex: string;
}

const topLinks: readonly NavigationLink[] = [
  { title: "Docs", url: "/docs" },
  { title: "API reference", url: "/docs/api" },
  { title: "Proto reference", url: "/docs/proto" },
  { title: "Console", url: "/console" },
];

/** Renders a page as a document that is readable without script. */
export function renderPage(page: Page, assets: PageAssets): string {
  return `<!doctype html>\n${renderToStaticMarkup(<Document page={page} assets={assets} />)}\n`;
}

function Document({ page, assets }: { readonly page: Page; readonly assets: PageAssets }) {
  const { title, summary, kind, headings = [] } = page;
  const contents = headings.filter(({ level }) => level === 2 || level === 3);
  return (
    <html lang="en">
      <head>
        <meta charSet="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="referrer" content="no-referrer" />
        <meta name="description" content={summary} />
        <title>{`${title} · Latchkey`}</title>
        <link rel="icon" href={assets.logo} type="image/svg+xml" />
        {assets.styles.map((href) => (
          <link key={href} rel="stylesheet" href={href} />
        ))}
        {/* Blocks rendering, so that the page does not flash in the wrong theme. */}
        <script type="module" src={assets.script} {...{ blocking: "render" }} />
      </head>
      <body className={kind}>
        <a className="skip" href="#content">
          Skip to content
        </a>
        <TopBar url={page.url} {...assets} />
        <div className="columns">
          <Sidebar page={page} />
          <main id="content" tabIndex={-1}>
            {/* biome-ignore lint/security/noDangerouslySetInnerHtml: built from files of this repository. */}
            <div className="content" dangerouslySetInnerHTML={{ __html: page.html }} />
            <Neighbors {...page} />
          </main>
          {contents.length > 1 && <OnThisPage headings={contents} />}
        </div>
        <SearchDialog />
      </body>
    </html>
  );
}

interface TopBarProps extends Pick<PageAssets, "logo" | "searchIndex"> {
  readonly url: string;
}

function TopBar({ url, logo, searchIndex }: TopBarProps) {
  return (
    <header className="top">
      <button
        className="icon-button menu-button"
        type="button"
        popoverTarget="sidebar"
        aria-label="Menu"
      >
        <Menu />
      </button>
      <a className="logo" href="/docs">
        <img src={logo} alt="" width="24" height="24" />
        Latchkey
      </a>
      <nav aria-label="Main">
        <TopLinks url={url} />
      </nav>
      {/* Controls that need script are hidden until it runs. */}
      <button
        className="search-button"
        type="button"
        aria-label="Search"
        data-search={searchIndex}
        hidden
      >
        <Search />
        <span>Search</span>
        <kbd>/</kbd>
      </button>
      <button className="icon-button" type="button" data-theme-switch hidden>
        <Monitor data-theme="auto" />
        <Sun data-theme="light" />
        <Moon data-theme="dark" />
      </button>
    </header>
  );
}

function TopLinks({ url }: { readonly url: string }) {
  const current = topLinks.findLast((link) => `${url}/`.startsWith(`${link.url}/`));
  return topLinks.map((link) => (
    <a
      key={link.url}
      className="top-link"
      href={link.url}
      aria-current={link === current ? "true" : undefined}
    >
      {link.title}
    </a>
  ));
}

/** On narrow screens it is a popover, which needs no script. */
function Sidebar({ page: { url, parent, sidebar, filter } }: { readonly page: Page }) {
  return (
    <nav id="sidebar" className="sidebar" aria-label="Pages" popover="auto">
      <div className="sidebar-top">
        <TopLinks url={url} />
        <button
          className="icon-button"
          type="button"
          popoverTarget="sidebar"
          popoverTargetAction="hide"
          aria-label="Close menu"
        >
          <X />
        </button>
      </div>
      {filter && (
        <input
          className="sidebar-filter"
          type="search"
          placeholder={`Filter ${filter}`}
          aria-label={`Filter ${filter}`}
          data-filter
          hidden
        />
      )}
      {filter && (
        <div className="sidebar-empty" role="status">
          <p data-filter-empty hidden>
            No {filter} match. <button type="button">Search everything</button>
          </p>
        </div>
      )}
      {sidebar.map(({ title, url: groupUrl, links }) => (
        <div key={title} className="sidebar-group">
          <p className="sidebar-title">{groupUrl ? <a href={groupUrl}>{title}</a> : title}</p>
          <Links links={links} current={parent ?? url} url={url} />
        </div>
      ))}
    </nav>
  );
}

interface LinksProps {
  readonly links: readonly NavigationLink[];
  readonly current: string;
  readonly url: string;
}

function Links({ links, current, url }: LinksProps) {
  return (
    <ul>
      {links.map((link) => (
        <li key={link.url} data-keywords={link.endpoint?.path}>
          <a
            className="page-link"
            href={link.url}
            aria-current={describeCurrent(link.url, current, url)}
          >
            {link.title}
            {link.endpoint && <MethodBadge method={link.endpoint.method} />}
          </a>
          {link.children && <Links links={link.children} current={current} url={url} />}
        </li>
      ))}
    </ul>
  );
}

/** The value of `aria-current`. */
function describeCurrent(link: string, current: string, url: string): "page" | "true" | undefined {
  return link === url ? "page" : link === current ? "true" : undefined;
}

function OnThisPage({ headings }: { readonly headings: readonly Heading[] }) {
  return (
    <aside className="on-this-page">
      <nav aria-labelledby="on-this-page">
        <p id="on-this-page">On this page</p>
        <ul>
          {headings.map(({ id, level, text }) => (
            <li key={id}>
              <a className={`heading-link level-${level}`} href={`#${id}`}>
                {text}
              </a>
            </li>
          ))}
        </ul>
      </nav>
    </aside>
  );
}

function SearchDialog() {
  return (
    <dialog className="search" aria-label="Search">
      <div className="search-field">
        <Search />
        <input
          type="text"
          role="combobox"
          aria-label="Search the documentation"
          aria-autocomplete="list"
          aria-controls="search-results"
          aria-expanded="false"
          placeholder="Search the documentation"
          autoComplete="off"
          spellCheck={false}
        />
        <button className="search-close" type="button">
          <span className="visually-hidden">Close search</span>
          <kbd>Esc</kbd>
          <X />
        </button>
      </div>
      <div id="search-results" role="listbox" aria-label="Results" hidden />
      <p className="search-status" role="status">
        Find pages, settings, commands, operations, fields, errors and messages.
      </p>
    </dialog>
  );
}

function Neighbors({ previous, next }: Pick<Page, "previous" | "next">) {
  return (
    (previous || next) && (
      <nav className="neighbors" aria-label="Previous and next page">
        {previous && <NeighborLink link={previous} rel="prev" icon={<ArrowLeft />} />}
        {next && <NeighborLink link={next} rel="next" icon={<ArrowRight />} />}
      </nav>
    )
  );
}

interface NeighborLinkProps {
  readonly link: NavigationLink;
  readonly rel: "prev" | "next";
  readonly icon: ReactNode;
}

function NeighborLink({ link, rel, icon }: NeighborLinkProps) {
  return (
    <a className={`neighbor ${rel}`} href={link.url} rel={rel}>
      <span>{rel === "prev" ? "Previous" : "Next"}</span>
      <strong>
        {icon}
        {link.title}
      </strong>
    </a>
  );
}
