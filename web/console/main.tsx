import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.js";
import "../common/tokens.css";
import "../common/base.css";
import "./styles/controls.css";
import "./styles/layout.css";
import { applyTheme } from "../common/theme.js";

applyTheme();
createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
