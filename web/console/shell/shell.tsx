import { BookOpen, ChevronsUpDown, Menu as MenuIcon, Search, X } from "lucide-react";
import {
  type ButtonHTMLAttributes,
  type ReactNode,
  type Ref,
  Suspense,
  useEffect,
  useRef,
  useState,
} from "react";
import { Link, useLocation } from "wouter";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { IconButton, iconSize } from "../ui/buttons.js";
import { Kbd, Logo } from "../ui/display.js";
import { LoadOnClick, lazyComponent } from "../ui/lazy.js";
import { ErrorBoundary } from "../ui/page.js";
import { preload } from "../ui/preload.js";
import { pageAt, sectionsFor } from "./pages.js";
import { modifierKey, useShortcuts } from "./shortcuts.js";

const AccountMenu = lazyComponent(() => import("./account-menu.js"));
const Palette = lazyComponent(() => import("./palette.js"));
const ShortcutSheet = lazyComponent(() => import("./shortcut-sheet.js"));

/** Lets the first page load before the rest. */
const preloadDelayMs = 2_000;

/** The frame of every page: menu, search, signed-in key and shortcuts. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const main = useFocusOnNavigation();
  const [here] = useLocation();
  const [overlay, setOverlay] = useState<"palette" | "shortcuts">();
  const openPalette = () => setOverlay("palette");
  const openShortcuts = () => setOverlay("shortcuts");
  useShortcuts({ openPalette, openShortcuts });
  useEffect(() => {
    const timer = setTimeout(preload, preloadDelayMs);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <Sidebar openPalette={openPalette} openShortcuts={openShortcuts} />
      <main id="main" ref={main} tabIndex={-1}>
        <ErrorBoundary key={here}>{children}</ErrorBoundary>
      </main>
      <ErrorBoundary key={overlay} fallback={null}>
        <Suspense>
          {overlay === "palette" && (
            <Palette close={() => setOverlay(undefined)} openShortcuts={openShortcuts} />
          )}
          {overlay === "shortcuts" && <ShortcutSheet close={() => setOverlay(undefined)} />}
        </Suspense>
      </ErrorBoundary>
    </div>
  );
}

interface SidebarProps {
  openPalette(): void;
  openShortcuts(): void;
}

/** On phones, a bar with buttons. One of them opens the rest. */
function Sidebar({ openPalette, openShortcuts }: SidebarProps) {
  const [isOpen, setIsOpen] = useState(false);
  const [here] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: closes when the page changes.
  useEffect(() => setIsOpen(false), [here]);
  return (
    <aside className="sidebar">
      <div className="sidebar-top">
        <Logo />
        <div className="phone-buttons">
          <IconButton icon={Search} label="Search" onClick={openPalette} />
          <IconButton
            icon={isOpen ? X : MenuIcon}
            label="Menu"
            aria-expanded={isOpen}
            aria-controls="menu"
            onClick={() => setIsOpen(!isOpen)}
          />
        </div>
      </div>
      <div id="menu" className="sidebar-body" data-open={isOpen}>
        <button type="button" className="search-button" onClick={openPalette}>
          <Search size={iconSize} aria-hidden />
          Search
          <Kbd keys={[modifierKey, "K"]} />
        </button>
        <Pages />
        <Account openShortcuts={openShortcuts} />
      </div>
    </aside>
  );
}

function Pages() {
  const sections = sectionsFor(useSignedInKey());
  const [here] = useLocation();
  const current = pageAt(
    here,
    sections.flatMap(({ pages }) => pages),
  );
  return (
    <nav aria-label="Pages">
      {sections.map(({ title, pages }, index) => (
        <div key={title}>
          <h2>{title}</h2>
          <ul>
            {pages.map((page) => (
              <li key={page.path}>
                <Link
                  className="nav-link"
                  href={page.path}
                  aria-current={page === current ? "page" : undefined}
                >
                  <page.icon size={iconSize} aria-hidden />
                  {page.label}
                </Link>
              </li>
            ))}
            {index === sections.length - 1 && (
              <li>
                <a className="nav-link" href="/docs" target="_blank" rel="noreferrer">
                  <BookOpen size={iconSize} aria-hidden />
                  Documentation
                </a>
              </li>
            )}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function Account({ openShortcuts }: Pick<SidebarProps, "openShortcuts">) {
  return (
    <LoadOnClick script={AccountMenu} popup="menu" button={(props) => <AccountButton {...props} />}>
      <AccountMenu trigger={<AccountButton />} openShortcuts={openShortcuts} />
    </LoadOnClick>
  );
}

interface AccountButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly ref?: Ref<HTMLButtonElement>;
}

function AccountButton(props: AccountButtonProps) {
  const { me } = useSignedInKey();
  return (
    <button {...props} type="button" className="account-button">
      <span className="visually-hidden">Account:</span>
      <span className="avatar" aria-hidden>
        {[...me.name][0]?.toUpperCase()}
      </span>
      <span>
        <strong>{me.name}</strong>
        <span className="hint">{me.kind === "session" ? "session" : `${me.type} key`}</span>
      </span>
      <ChevronsUpDown size={14} className="muted" aria-hidden />
    </button>
  );
}

/** Moves the focus to the new page, for screen readers, unless one of its fields takes it. */
function useFocusOnNavigation() {
  const main = useRef<HTMLElement>(null);
  const [here] = useLocation();
  const before = useRef(here);
  useEffect(() => {
    if (before.current !== here) {
      before.current = here;
      if (!main.current?.contains(document.activeElement)) {
        main.current?.focus();
      }
    }
  }, [here]);
  return main;
}
