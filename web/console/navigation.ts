import type { Access } from "./access/access.js";

interface Destination {
  readonly path: string;
  readonly label: string;
  /** Whether the page makes sense for what the key may do. */
  isFor(access: Access): boolean;
}

/** Everybody can look at the own key. */
export const home = "/me";

/** The pages in the menu. */
export const destinations: readonly Destination[] = [
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
