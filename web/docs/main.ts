import "../common/fonts.css";
import "../common/tokens.css";
import "../common/base.css";
import "./styles/layout.css";
import "./styles/content.css";
import "./styles/code.css";
import { applyTheme, chooseTheme, chosenTheme, themes } from "../common/theme.js";

applyTheme();
setUpThemeSwitch();

/** The button shows the chosen theme, and chooses the next one. */
function setUpThemeSwitch(): void {
  const button = document.querySelector<HTMLButtonElement>("[data-theme-switch]");
  if (!button) {
    return;
  }
  const show = () => {
    button.dataset.chosen = chosenTheme();
    button.ariaLabel = `Theme: ${chosenTheme()}`;
  };
  button.addEventListener("click", () => {
    chooseTheme(themes[(themes.indexOf(chosenTheme()) + 1) % themes.length] ?? "auto");
    show();
  });
  show();
  button.hidden = false;
}
