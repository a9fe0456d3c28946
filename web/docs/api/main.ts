import "../main.js";
import { keyHeader } from "../../common/key-header.js";

const reference = document.getElementById("reference") as HTMLElement;
// The viewer is large, so it is loaded after the page.
const { showReference } = await import("./reference.js");
showReference(reference, keyHeader);
