import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { chooseTheme, chosenTheme, type Theme, themes } from "../common/theme.js";
import { useAccess } from "./access/access.js";
import { loadPagesInTime } from "./lazy-page.js";
import { destinations } from "./navigation.js";
import { Button } from "./ui/button.js";
import { Logo } from "./ui/logo.js";
import { Mishap } from "./ui/mishap.js";

/** Milliseconds after which the first page has what it needs, and there is time for the others. */
const firstPageTime = 2_000;

/** What stands around every page: the menu, who is signed in, and the way out. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const main = useFocusOnNewPage();
  const [here] = useLocation();
  useEffect(() => {
    const timer = setTimeout(loadPagesInTime, firstPageTime);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <aside className="sidebar">
        <Logo />
        <Menu />
        <Visitor />
      </aside>
      <main id="main" ref={main} tabIndex={-1}>
        <Mishap key={here}>{children}</Mishap>
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

function Visitor() {
  const { me, signOut } = useAccess();
  const [theme, setTheme] = useState(chosenTheme);
  return (
    <div className="visitor">
      <p>
        <strong>{me.name}</strong>
        <span className="muted">{me.kind === "session" ? "session" : `${me.type} key`}</span>
      </p>
      <div className="visitor-controls">
        <select
          aria-label="Colours"
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

/** A person who does not see the page change has to be brought to the new one. */
function useFocusOnNewPage() {
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
