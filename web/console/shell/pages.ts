import {
  Activity,
  AppWindow,
  CircleHelp,
  FlaskConical,
  KeyRound,
  LayoutDashboard,
  type LucideIcon,
  Timer,
} from "lucide-react";
import type { SignedInKey } from "../sign-in/signed-in-key.js";

interface PageLink {
  readonly path: string;
  readonly label: string;
  /** Other words that find the page in the palette. */
  readonly keywords?: string;
  readonly icon: LucideIcon;
  /** Pressed after `g`, the key opens the page. */
  readonly key: string;
  /** The permission that the page needs, if any. */
  readonly needs?: string;
}

interface Section {
  readonly title: string;
  readonly pages: readonly PageLink[];
}

/** The page after sign-in. */
export const home = "/overview";

/** The pages in the menu, the palette and the shortcuts. */
const sections: readonly Section[] = [
  {
    title: "Manage",
    pages: [
      { path: home, label: "Overview", icon: LayoutDashboard, key: "o" },
      {
        path: "/applications",
        label: "Applications",
        icon: AppWindow,
        key: "a",
        needs: "application:read",
      },
      {
        path: "/sessions",
        label: "Sessions",
        icon: Timer,
        key: "s",
        needs: "session:read",
      },
      {
        path: "/activity",
        label: "Activity",
        keywords: "audit log events export csv json",
        icon: Activity,
        key: "c",
        needs: "event:read",
      },
    ],
  },
  {
    title: "Access",
    pages: [
      {
        path: "/why",
        label: "Why?",
        keywords: "check access",
        icon: CircleHelp,
        key: "w",
      },
      { path: "/me", label: "My key", icon: KeyRound, key: "k" },
    ],
  },
  {
    title: "Learn",
    pages: [
      {
        path: "/sessions/try",
        label: "Try a session",
        icon: FlaskConical,
        key: "t",
      },
    ],
  },
];

/** The sections with the pages that a key can use. */
export function sectionsFor({ may }: Pick<SignedInKey, "may">): readonly Section[] {
  return sections
    .map(({ title, pages }) => ({
      title,
      pages: pages.filter(({ needs }) => needs === undefined || may(needs)),
    }))
    .filter(({ pages }) => pages.length > 0);
}

export function pagesFor(access: Pick<SignedInKey, "may">): readonly PageLink[] {
  return sectionsFor(access).flatMap(({ pages }) => pages);
}

/** The page of the most specific path. */
export function pageAt(path: string, pages: readonly PageLink[]): PageLink | undefined {
  return pages
    .filter((page) => path === page.path || path.startsWith(`${page.path}/`))
    .toSorted((one, other) => other.path.length - one.path.length)[0];
}
