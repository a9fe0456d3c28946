import "../console/styles/tokens.css";
import "../console/styles/base.css";
import "./styles/top.css";
import { applyTheme } from "../console/theme.js";

applyTheme();
const reference = document.getElementById("reference") as HTMLElement;
const keyHeader = document.querySelector<HTMLMetaElement>("meta[name=key-header]")?.content ?? "";
// The viewer is large: the page is there before it.
const { showReference } = await import("./reference.js");
showReference(reference, keyHeader);
