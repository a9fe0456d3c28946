/** What Swagger UI leaves without a name or out of reach of the keyboard, and what it needs. */
const fixes: readonly (readonly [selector: string, attribute: string, value: string])[] = [
  [".close-modal", "aria-label", "Close"],
  [".auth-btn-wrapper .authorize[type=submit]", "aria-label", "Authorize"],
  [".auth-btn-wrapper [aria-label='Remove authorization']", "aria-label", "Logout"],
  [".operation-filter-input", "aria-label", "Filter by tag or path"],
  [".examples-select-element", "aria-label", "Example"],
  ["textarea.body-param__text", "aria-label", "Request body"],
  ["pre.microlight, pre.curl, .microlight.example", "tabindex", "0"],
];

/** Names the controls of the viewer, whenever it shows new ones. */
export function nameControls(place: HTMLElement): void {
  const applyFixes = () => {
    for (const [selector, attribute, value] of fixes) {
      for (const element of place.querySelectorAll(selector)) {
        if (element.getAttribute(attribute) !== value) {
          element.setAttribute(attribute, value);
        }
      }
    }
  };
  new MutationObserver(applyFixes).observe(place, { childList: true, subtree: true });
}
