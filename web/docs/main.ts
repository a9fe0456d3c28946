import "../common/tokens.css";
import "../common/base.css";
import "./styles/top.css";
import { keyHeader } from "../common/key-header.js";
import { applyTheme } from "../common/theme.js";

applyTheme();
const reference = document.getElementById("reference") as HTMLElement;
// The viewer is large, so it is loaded after the page.
const { showReference } = await import("./reference.js");
showReference(reference, keyHeader);
