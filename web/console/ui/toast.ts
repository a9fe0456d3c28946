import { copy } from "../../common/clipboard.js";
import { createLoader } from "./preload.js";
import type { ToastOptions } from "./toaster.js";

const loadToaster = createLoader(() => import("./toaster.js"));
let toaster: ReturnType<typeof loadToaster> | undefined;

/** Confirms an action with a short message that disappears by itself. */
export function toast(options: ToastOptions): void {
  toaster = loadToaster();
  toaster.then(
    ({ showToast }) => showToast(options),
    () => showPlainly(options),
  );
}

const plainDurationMs = 10_000;

/** Shows a message without the script for messages, which cannot be loaded. */
function showPlainly({ title, description = "" }: ToastOptions): void {
  const notice = document.createElement("div");
  notice.role = "alert";
  notice.className = "outage-notice";
  notice.dataset.shown = "true";
  notice.textContent = `${title}. ${description}`;
  document.body.append(notice);
  setTimeout(() => notice.remove(), plainDurationMs);
}

/** Removes all messages, so that nobody undoes an action of another key. */
export function dismissToasts(): void {
  toaster?.then(
    ({ dismissAll }) => dismissAll(),
    () => undefined,
  );
}

/** Copies text to the clipboard and confirms it with a toast. */
export async function copyText(text: string, name: string): Promise<void> {
  toast(
    (await copy(text))
      ? { title: `${name} copied` }
      : { title: `${name} not copied`, description: "The browser blocks it.", tone: "danger" },
  );
}
