import type { Page } from "playwright-core";

/**
 * Lists the texts of a page that cannot be read: cut to less than a few letters, or beyond the
 * card, table or dialog that they belong to. Times, states and headings may not be cut at all.
 */
export function unreadableTexts(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(script);
}

const script = `(() => {
  const minWidth = 40;
  const whole = "time, .badge, th, dt, h2";
  const frames = ".card, .data-table, .dialog, .notice, .menu, main";
  const unreadable = [];

  /** The part of a box that its clipping ancestors show. */
  function shownPart(box, element) {
    let { left, right, top, bottom } = box;
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const { overflowX, overflowY, position } = getComputedStyle(at);
      // What scrolls can be scrolled to.
      if (overflowX === "auto" || overflowX === "scroll" || overflowY === "auto" || overflowY === "scroll") {
        return undefined;
      }
      if (overflowX !== "visible") {
        const clip = at.getBoundingClientRect();
        left = Math.max(left, clip.left);
        right = Math.min(right, clip.right);
        top = Math.max(top, clip.top);
        bottom = Math.min(bottom, clip.bottom);
      }
      if (position === "fixed") {
        break;
      }
    }
    return { width: right - left, height: bottom - top };
  }

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const element = text.parentElement;
    const words = text.data.trim();
    if (words === "" || element.closest(".visually-hidden, .skip, script, style, [hidden], svg, textarea")) {
      continue;
    }
    if (!element.checkVisibility({ visibilityProperty: true }) || element.closest("thead .check")) {
      continue;
    }
    const range = document.createRange();
    range.selectNodeContents(text);
    const lines = [...range.getClientRects()].filter(({ width }) => width > 0);
    const box = lines[0];
    const name = element.tagName.toLowerCase() + (element.className ? "." + element.className : "");
    const report = (why) => unreadable.push(name + " " + why + ": " + words.slice(0, 40));
    if (!box) {
      // The content of a cell without width.
      report("has no size");
      continue;
    }
    const shown = shownPart(box, element);
    if (!shown) {
      continue;
    }
    const needed = element.closest(whole) ? box.width - 1 : Math.min(box.width - 1, minWidth);
    if (shown.width < needed || shown.height < Math.min(box.height, 8)) {
      report("shows " + Math.round(shown.width) + " of " + Math.round(box.width) + " px");
    }
    const frame = element.closest(frames);
    const right = Math.max(...lines.map((line) => line.right));
    const isCut = shown.width < box.width - 1;
    if (frame && !isCut && right > frame.getBoundingClientRect().right + 1) {
      report("leaves its frame");
    }
  }
  return unreadable;
})()`;
