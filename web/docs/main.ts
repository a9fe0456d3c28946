import "../common/fonts.css";
import "../common/tokens.css";
import "../common/base.css";
import "./styles/layout.css";
import "./styles/content.css";
import "./styles/code.css";
import "./styles/search.css";
import "./styles/print.css";
import { applyTheme, chooseTheme, chosenTheme, onThemeChange, themes } from "../common/theme.js";
import { containsWords } from "../common/words.js";
import { addCopyButtons, setUpTabs } from "./code-blocks.js";
import { openSearch, setUpSearch } from "./search/search-dialog.js";
import { fillInServiceAddress } from "./service-address.js";

applyTheme();
chooseImages();
onThemeChange(chooseImages);
fillInServiceAddress();
addCopyButtons();
setUpTabs();
setUpSearch();
markHeading();
closeMenuOnNavigation();
setUpFilter();
setUpThemeSwitch();
reveal(document.querySelector(".page-link[aria-current=page]"));

/** Shows the dark images also if the theme is chosen, and not that of the system. */
function chooseImages(): void {
  const media = { auto: "(prefers-color-scheme: dark)", light: "not all", dark: "all" };
  for (const source of document.querySelectorAll<HTMLSourceElement>("picture source")) {
    source.media = media[chosenTheme()];
  }
}

/** Scrolls the navigation, but not the page, until a link and its neighbors are visible. */
function reveal(link: Element | null): void {
  const navigation = link?.closest("nav");
  if (link && navigation) {
    const margin = 96;
    const { top, bottom } = link.getBoundingClientRect();
    const area = navigation.getBoundingClientRect();
    const above = Math.min(0, top - margin - area.top);
    const below = Math.max(0, bottom + margin - area.bottom);
    navigation.scrollBy({ top: above || below, behavior: "instant" });
  }
}

/** The button shows the chosen theme, and chooses the next one. */
function setUpThemeSwitch(): void {
  const button = document.querySelector<HTMLButtonElement>("[data-theme-switch]");
  if (!button) {
    return;
  }
  const show = () => {
    button.dataset.chosen = chosenTheme();
    button.ariaLabel = `Theme: ${chosenTheme()}`;
  };
  button.addEventListener("click", () => {
    chooseTheme(themes[(themes.indexOf(chosenTheme()) + 1) % themes.length] ?? "auto");
    show();
  });
  show();
  button.hidden = false;
}

/** Marks the heading at the top of the screen in the navigation of the page. */
function markHeading(): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("nav a[href^='#']")];
  const headings = links.flatMap(({ hash }) => document.getElementById(hash.slice(1)) ?? []);
  const mark = () => {
    const current = headings.findLastIndex((heading) => heading.getBoundingClientRect().top < 120);
    for (const [index, link] of links.entries()) {
      const isCurrent = index === Math.max(0, current);
      if (isCurrent && link.ariaCurrent === null) {
        reveal(link);
      }
      link.ariaCurrent = isCurrent ? "true" : null;
    }
  };
  document.addEventListener("scroll", mark, { passive: true });
  mark();
}

/** A link to a heading does not leave the page, so the menu of narrow screens would stay open. */
function closeMenuOnNavigation(): void {
  const sidebar = document.getElementById("sidebar");
  sidebar?.addEventListener("click", ({ target }) => {
    if ((target as Element).closest("a") && sidebar.matches(":popover-open")) {
      sidebar.hidePopover();
    }
  });
}

/** Shows the links in the sidebar whose text or keywords contain every typed word. Enter opens the first one. */
function setUpFilter(): void {
  const input = document.querySelector<HTMLInputElement>("[data-filter]");
  const empty = document.querySelector<HTMLElement>("[data-filter-empty]");
  const groups = [...document.querySelectorAll<HTMLElement>(".sidebar-group")];
  if (!input) {
    return;
  }
  input.hidden = false;
  input.addEventListener("keydown", ({ key }) => {
    if (key === "Enter") {
      document.querySelector<HTMLElement>(".sidebar-group li:not([hidden]) a")?.click();
    }
  });
  input.addEventListener("input", () => {
    for (const group of groups) {
      const items = [...group.querySelectorAll("li")];
      for (const item of items) {
        const text = `${item.textContent} ${item.dataset.keywords ?? ""}`;
        item.hidden = !containsWords(text, input.value);
      }
      group.hidden = items.every(({ hidden }) => hidden);
    }
    if (empty) {
      empty.hidden = groups.some(({ hidden }) => !hidden);
    }
  });
  empty?.querySelector("button")?.addEventListener("click", () => openSearch(input.value));
}
