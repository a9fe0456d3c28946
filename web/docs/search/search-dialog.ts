import type { loadSearch, renderResults } from "./search.js";

/** The search and its rendering, which are loaded on first use. */
interface Search {
  readonly find: Awaited<ReturnType<typeof loadSearch>>;
  readonly render: typeof renderResults;
}

/** Connects the dialog with its button and with the keys / and Ctrl+K or ⌘K. */
export function setUpSearch(): void {
  const dialog = document.querySelector<HTMLDialogElement>("dialog.search");
  const button = document.querySelector<HTMLButtonElement>("[data-search]");
  const input = dialog?.querySelector("input");
  const list = dialog?.querySelector<HTMLElement>("[role=listbox]");
  const status = dialog?.querySelector<HTMLElement>("[role=status]");
  if (!dialog || !button || !input || !list || !status) {
    return;
  }
  let loading: Promise<Search> | undefined;
  let selected = -1;
  const options = () => [...list.querySelectorAll<HTMLAnchorElement>("[role=option]")];

  function open(): void {
    if (!dialog?.open) {
      dialog?.showModal();
      input?.select();
      // So that it is there when the first word is typed.
      void load().catch(() => {});
    }
  }

  function load(): Promise<Search> {
    loading ??= loadAll(button?.dataset.search ?? "").catch((reason) => {
      loading = undefined;
      throw reason;
    });
    return loading;
  }

  async function update(): Promise<void> {
    const query = input?.value.trim() ?? "";
    try {
      const { find, render } = await load();
      // A later character may have been typed meanwhile.
      if (query === input?.value.trim()) {
        const results = find(query);
        list?.replaceChildren(...render(results));
        showStatus(query, results.length);
        select(0);
      }
    } catch {
      list?.replaceChildren();
      showStatus("", 0, "Search could not be loaded. Try again.");
    }
  }

  function showStatus(query: string, count: number, failure?: string): void {
    const isEmpty = count === 0;
    (list as HTMLElement).hidden = isEmpty;
    input?.setAttribute("aria-expanded", String(!isEmpty));
    (status as HTMLElement).classList.toggle("visually-hidden", !isEmpty);
    (status as HTMLElement).textContent =
      failure ??
      (query === "" ? hint : isEmpty ? `Nothing found for “${query}”.` : `${count} results`);
  }

  function select(index: number): void {
    const all = options();
    selected = all.length === 0 ? -1 : (index + all.length) % all.length;
    for (const [position, option] of all.entries()) {
      option.ariaSelected = String(position === selected);
    }
    all[selected]?.scrollIntoView({ block: "nearest" });
    input?.setAttribute("aria-activedescendant", all[selected]?.id ?? "");
  }

  const hint = status.textContent;
  button.hidden = false;
  button.addEventListener("click", open);
  input.addEventListener("input", () => void update());
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      select(selected + step);
    } else if (event.key === "Enter") {
      event.preventDefault();
      options()[selected]?.click();
    }
  });
  dialog.querySelector(".search-close")?.addEventListener("click", () => dialog.close());
  // A link to a heading of the same page does not leave it.
  list.addEventListener("click", () => dialog.close());
  // Only the backdrop is the dialog itself.
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  document.addEventListener("keydown", (event) => {
    const isShortcut = (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k";
    if (isShortcut || (event.key === "/" && !isTyping(event.target))) {
      event.preventDefault();
      open();
    }
  });
}

/** Opens the dialog and searches for a text. */
export function openSearch(query: string): void {
  document.querySelector<HTMLButtonElement>("[data-search]")?.click();
  const input = document.querySelector<HTMLInputElement>("dialog.search input");
  if (input) {
    input.value = query;
    input.dispatchEvent(new Event("input"));
  }
}

async function loadAll(indexUrl: string): Promise<Search> {
  const { loadSearch, renderResults } = await import("./search.js");
  return { find: await loadSearch(indexUrl), render: renderResults };
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("input, textarea, select"))
  );
}
