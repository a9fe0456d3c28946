import "../main.js";
import "./api.css";
import { defaultKeyHeader } from "../../../src/contract/headers.js";
import { keyHeader } from "../../common/key-header.js";
import { exampleOrigin } from "./operations.js";
import type { OpenDialog } from "./try/try-dialog.js";

fillInServiceAddress();
setUpTryButtons();

/** Replaces the example origin and key header in the samples. The page is built for every service. */
function fillInServiceAddress(): void {
  const texts = document.createTreeWalker(
    document.getElementById("content") as Node,
    NodeFilter.SHOW_TEXT,
  );
  while (texts.nextNode()) {
    const node = texts.currentNode as Text;
    if (node.data.includes(exampleOrigin) || node.data.includes(defaultKeyHeader)) {
      node.data = node.data
        .replaceAll(exampleOrigin, location.origin)
        .replaceAll(defaultKeyHeader, keyHeader);
    }
  }
}

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
