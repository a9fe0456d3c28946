import { copy } from "../common/clipboard.js";
import { openStorage } from "../common/storage.js";

const confirmation = 3_000;

const copyKeys = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘C" : "Ctrl+C";

/** Adds a button to each block of code that is not output. */
export function addCopyButtons(): void {
  for (const block of document.querySelectorAll<HTMLElement>(".code:not(.output)")) {
    const button = createButton("copy", "Copy");
    const code = block.querySelector("pre") as HTMLElement;
    button.ariaLive = "polite";
    button.addEventListener("click", async () => {
      const isCopied = await copy(code.textContent);
      button.textContent = isCopied ? "Copied" : `Press ${copyKeys}`;
      if (!isCopied) {
        getSelection()?.selectAllChildren(code);
      }
      setTimeout(() => {
        button.textContent = "Copy";
      }, confirmation);
    });
    block.append(button);
  }
}

/** The label of the chosen language of samples. */
export const storedLanguage = openStorage("localStorage", "latchkey-language");

/** Turns adjacent blocks of the same sample into tabs. One choice applies to all of them. */
export function setUpTabs(): void {
  const groups = [...document.querySelectorAll<HTMLElement>(".tabs")].map(createTabs);

  function choose(language: string): void {
    for (const show of groups.map(({ show }) => show)) {
      show(language);
    }
  }

  for (const { tabs } of groups) {
    for (const tab of tabs) {
      tab.addEventListener("click", () => {
        const top = tab.getBoundingClientRect().top;
        choose(tab.textContent);
        storedLanguage.write(tab.textContent);
        // Tabs above may have changed their height.
        scrollBy({ top: tab.getBoundingClientRect().top - top, behavior: "instant" });
      });
    }
  }
  choose(storedLanguage.read() ?? "");
}

interface Tabs {
  readonly tabs: readonly HTMLButtonElement[];
  /** Shows a language, if the group has it; at first the first one. */
  show(language: string): void;
}

function createTabs(group: HTMLElement, groupIndex: number): Tabs {
  const panels = [...group.querySelectorAll<HTMLElement>(".code")];
  const tabs = panels.map((panel, index) => {
    const label = panel.querySelector(".code-label");
    const tab = createButton("tab", label?.textContent ?? "");
    label?.remove();
    tab.id = `tab-${groupIndex}-${index}`;
    panel.id = `panel-${groupIndex}-${index}`;
    tab.role = "tab";
    tab.setAttribute("aria-controls", panel.id);
    panel.role = "tabpanel";
    panel.setAttribute("aria-labelledby", tab.id);
    return tab;
  });
  const list = document.createElement("div");
  list.className = "tab-list";
  list.role = "tablist";
  list.ariaLabel = "Language";
  list.append(...tabs);
  list.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const focused = tabs.indexOf(document.activeElement as HTMLButtonElement);
    if (step !== undefined && focused >= 0) {
      const next = tabs.at((focused + step) % tabs.length);
      next?.focus();
      next?.click();
    }
  });
  group.prepend(list);

  function select(selected: number): void {
    for (const [index, tab] of tabs.entries()) {
      tab.ariaSelected = String(index === selected);
      tab.tabIndex = index === selected ? 0 : -1;
      (panels[index] as HTMLElement).hidden = index !== selected;
    }
  }
  select(0);
  return {
    tabs,
    show: (language) => {
      const index = tabs.findIndex(({ textContent }) => textContent === language);
      if (index >= 0) {
        select(index);
      }
    },
  };
}

function createButton(name: string, label: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = name;
  button.textContent = label;
  return button;
}
