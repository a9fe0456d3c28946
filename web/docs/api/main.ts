import "../main.js";
import "./api.css";
import type { OpenDialog } from "./try/try-dialog.js";

setUpTryButtons();

function setUpTryButtons(): void {
  let loading: Promise<OpenDialog> | undefined;
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-try]")) {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      loading ??= import("./try/try-dialog.js").then(({ createTryDialog }) => createTryDialog());
      try {
        (await loading)(button.dataset.try ?? "");
        button.textContent = label;
      } catch {
        loading = undefined;
        button.textContent = "Not loaded. Try again";
      }
    });
  }
}
