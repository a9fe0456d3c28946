import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { chooseTheme, chosenTheme, type Theme, themes } from "../common/theme.js";
import { preloadPages } from "./lazy-page.js";
import { type Access, useAccess } from "./sign-in/signed-in-key.js";
import { Button } from "./ui/buttons.js";
import { Logo } from "./ui/display.js";
import { ErrorBoundary } from "./ui/page.js";

/** Lets the first page load before the others. */
const preloadDelayMs = 2_000;

/** The frame of every page: menu, signed-in key, theme and sign-out. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const main = useFocusOnNavigation();
  const [here] = useLocation();
  useEffect(() => {
    const timer = setTimeout(preloadPages, preloadDelayMs);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <aside className="sidebar">
        <Logo />
        <Menu />
        <SignedInUser />
      </aside>
      <main id="main" ref={main} tabIndex={-1}>
        <ErrorBoundary key={here}>{children}</ErrorBoundary>
      </main>
    </div>
  );
}

function Menu() {
  const access = useAccess();
  const [here] = useLocation();
  const shown = destinations.filter(({ isFor }) => isFor(access));
  const [current] = shown
    .filter(({ path }) => here === path || here.startsWith(`${path}/`))
    .sort((one, other) => other.path.length - one.path.length);
  return (
    <nav aria-label="Pages">
      <ul>
        {shown.map((destination) => (
          <li key={destination.path}>
            <Link
              href={destination.path}
              aria-current={destination === current ? "page" : undefined}
            >
              {destination.label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function SignedInUser() {
  const { me, signOut } = useAccess();
  const [theme, setTheme] = useState(chosenTheme);
  return (
    <div className="signed-in-user">
      <p>
        <strong>{me.name}</strong>
        <span className="muted">{me.kind === "session" ? "session" : `${me.type} key`}</span>
      </p>
      <div className="signed-in-controls">
        <select
          aria-label="Theme"
          value={theme}
          onChange={({ target }) => {
            chooseTheme(target.value as Theme);
            setTheme(chosenTheme());
          }}
        >
          {themes.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <Button onClick={signOut}>Sign out</Button>
      </div>
    </div>
  );
}

/** Moves the focus to the new page, for screen readers. */
function useFocusOnNavigation() {
  const main = useRef<HTMLElement>(null);
  const [here] = useLocation();
  const before = useRef(here);
  useEffect(() => {
    if (before.current !== here) {
      before.current = here;
      main.current?.focus();
    }
  }, [here]);
  return main;
}

interface Destination {
  readonly path: string;
  readonly label: string;
  /** Whether the key has the permissions that the page needs. */
  isFor(access: Access): boolean;
}

/** The only page that every key can see. */
export const home = "/me";

/** The pages in the menu. */
const destinations: readonly Destination[] = [
  {
    path: "/applications",
    label: "Applications",
    isFor: ({ may }) => may("application:read"),
  },
  { path: "/sessions", label: "Sessions", isFor: ({ may }) => may("session:read") },
  { path: "/sessions/try", label: "Try a session", isFor: () => true },
  { path: "/why", label: "Why?", isFor: () => true },
  { path: "/activity", label: "Activity", isFor: ({ may }) => may("event:read") },
  { path: home, label: "My key", isFor: () => true },
];
