import {
  Activity,
  AppWindow,
  BookOpen,
  ChevronsUpDown,
  CircleHelp,
  Copy,
  FlaskConical,
  KeyRound,
  LogOut,
  type LucideIcon,
  Menu as MenuIcon,
  Timer,
  X,
} from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { chooseTheme, chosenTheme, type Theme, themes } from "../common/theme.js";
import { preloadPages } from "./lazy-page.js";
import { type Access, useAccess } from "./sign-in/signed-in-key.js";
import { IconButton, iconSize } from "./ui/buttons.js";
import { Logo } from "./ui/display.js";
import { Menu } from "./ui/menu.js";
import { ErrorBoundary } from "./ui/page.js";
import { toast } from "./ui/toast.js";

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
      <Sidebar key={here} />
      <main id="main" ref={main} tabIndex={-1}>
        <ErrorBoundary key={here}>{children}</ErrorBoundary>
      </main>
    </div>
  );
}

/** On phones, a bar with a button that opens the rest. */
function Sidebar() {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <aside className="sidebar">
      <div className="sidebar-top">
        <Logo />
        <div className="menu-button">
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
        <Pages />
        <Account />
      </div>
    </aside>
  );
}

function Pages() {
  const access = useAccess();
  const [here] = useLocation();
  const shown = sections.map(({ title, pages }) => ({
    title,
    pages: pages.filter(({ isFor }) => isFor(access)),
  }));
  const [current] = shown
    .flatMap(({ pages }) => pages)
    .filter(({ path }) => here === path || here.startsWith(`${path}/`))
    .sort((one, other) => other.path.length - one.path.length);
  return (
    <nav aria-label="Pages">
      {shown.map(({ title, pages }) => (
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
            {title === learn && (
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

const themeNames: Readonly<Record<Theme, string>> = {
  auto: "System",
  light: "Light",
  dark: "Dark",
};

/** The signed-in key, with a menu. */
function Account() {
  const { me, signOut } = useAccess();
  const [theme, setTheme] = useState(chosenTheme);
  const kind = me.kind === "session" ? "session" : `${me.type} key`;

  async function copyId(): Promise<void> {
    await navigator.clipboard.writeText(me.applicationId);
    toast({ title: "Application id copied" });
  }

  return (
    <Menu
      placement="top-start"
      header={
        <>
          <strong>{me.name}</strong>
          <p className="hint">{kind}</p>
        </>
      }
      groups={[
        {
          label: "Theme",
          choices: themes.map((value) => ({ value, label: themeNames[value] })),
          value: theme,
          onChange(value) {
            chooseTheme(value as Theme);
            setTheme(chosenTheme());
          },
        },
        [
          { label: "Copy my application id", icon: Copy, onSelect: () => void copyId() },
          { label: "Sign out", icon: LogOut, onSelect: signOut },
        ],
      ]}
      trigger={
        <button type="button" className="account-button">
          <span className="visually-hidden">Account:</span>
          <span className="avatar" aria-hidden>
            {me.name.slice(0, 1).toUpperCase()}
          </span>
          <span>
            <strong>{me.name}</strong>
            <span className="hint">{kind}</span>
          </span>
          <ChevronsUpDown size={14} className="muted" aria-hidden />
        </button>
      }
    />
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
  readonly icon: LucideIcon;
  /** Whether the key has the permissions that the page needs. */
  isFor(access: Access): boolean;
}

interface Section {
  readonly title: string;
  readonly pages: readonly Destination[];
}

/** The only page that every key can see. */
export const home = "/me";

const learn = "Learn";

/** The pages in the menu. */
const sections: readonly Section[] = [
  {
    title: "Manage",
    pages: [
      {
        path: "/applications",
        label: "Applications",
        icon: AppWindow,
        isFor: ({ may }) => may("application:read"),
      },
      {
        path: "/sessions",
        label: "Sessions",
        icon: Timer,
        isFor: ({ may }) => may("session:read"),
      },
      {
        path: "/activity",
        label: "Activity",
        icon: Activity,
        isFor: ({ may }) => may("event:read"),
      },
    ],
  },
  {
    title: "Access",
    pages: [
      { path: "/why", label: "Why?", icon: CircleHelp, isFor: () => true },
      { path: home, label: "My key", icon: KeyRound, isFor: () => true },
    ],
  },
  {
    title: learn,
    pages: [
      { path: "/sessions/try", label: "Try a session", icon: FlaskConical, isFor: () => true },
    ],
  },
];
