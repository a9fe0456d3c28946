import { Combobox, createListCollection } from "@ark-ui/react/combobox";
import { Dialog } from "@ark-ui/react/dialog";
import { Portal } from "@ark-ui/react/portal";
import {
  AppWindow,
  BookOpen,
  Braces,
  CalendarClock,
  Copy,
  Keyboard,
  LogOut,
  type LucideIcon,
  Plus,
  Search,
  Sprout,
  SunMoon,
  Timer,
} from "lucide-react";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import {
  type Application,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../../src/contract/fields.js";
import { problemOf } from "../../../src/contract/problem-report.js";
import { isId } from "../../../src/lib/uuid-text.js";
import { chooseTheme, chosenTheme, themes } from "../../common/theme.js";
import { containsWords } from "../../common/words.js";
import { shortId } from "../applications/application-display.js";
import { mayContainAnyKey } from "../applications/application-query.js";
import { useApplicationSearch } from "../applications/application-search.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { iconSize } from "../ui/buttons.js";
import { Badge, Kbd } from "../ui/display.js";
import { pageActions } from "../ui/page-actions.js";
import { copyText } from "../ui/toast.js";
import { themeNames } from "./account-menu.js";
import { pagesFor } from "./pages.js";

interface PaletteProps {
  close(): void;
  openShortcuts(): void;
}

interface Command {
  readonly value: string;
  readonly label: string;
  /** Other words that find the command. */
  readonly keywords?: string | undefined;
  readonly icon: LucideIcon;
  readonly group: "Applications" | "Pages" | "Actions";
  readonly details?: ReactNode;
  run(): void;
}

/** Finds applications, goes to pages and runs actions. The text is never in the URL. */
export default function Palette({ close, openShortcuts }: PaletteProps) {
  const [text, setText] = useState("");
  const [, navigate] = useLocation();
  const { may } = useSignedInKey();
  const id = text.trim();
  const found = useApplicationSearch(text, { size: maxApplications });
  const commands = [
    ...found.applications.map((application) => commandFor(application, navigate)),
    ...(found.isIncomplete && !mayContainAnyKey(text) ? [continueIn(navigate, text)] : []),
    ...matching(useCommands(openShortcuts), text),
    ...(found.applications.length === 0 && !found.isLoading && isId(id) && may("session:read")
      ? [commandForSession(id, navigate)]
      : []),
  ];
  const collection = createListCollection({ items: commands });

  const message =
    found.error !== undefined
      ? `Applications: ${problemOf(found.error).detail}`
      : found.isIncomplete
        ? "The search stopped before the end of the list of applications."
        : commands.length > 0
          ? undefined
          : found.isLoading
            ? "Searching…"
            : "Nothing matches.";

  function run(value: string | undefined): void {
    const command = commands.find((candidate) => candidate.value === value);
    if (command) {
      close();
      command.run();
    }
  }

  return (
    <Dialog.Root open onOpenChange={({ open }) => !open && close()} aria-label="Search">
      <Portal>
        <Dialog.Backdrop className="dialog-backdrop" />
        <Dialog.Positioner className="dialog-positioner">
          <Dialog.Content className="palette">
            <Combobox.Root
              collection={collection}
              open
              disableLayer
              inputBehavior="autohighlight"
              selectionBehavior="preserve"
              inputValue={text}
              onInputValueChange={({ inputValue, reason }) =>
                reason === "input-change" && setText(inputValue)
              }
              value={[]}
              onValueChange={({ value }) => run(value[0])}
            >
              <Combobox.Control className="palette-input">
                <Search size={iconSize} aria-hidden />
                <Combobox.Input
                  aria-label="Search"
                  placeholder="Find applications, pages and actions"
                  maxLength={maxSearch}
                  autoComplete="off"
                  spellCheck={false}
                  onKeyDown={(event) => {
                    if (event.key === "Escape") {
                      close();
                    }
                  }}
                />
              </Combobox.Control>
              <Combobox.Content className="palette-list">
                {groups.map((group) => (
                  <Group
                    key={group}
                    title={group}
                    commands={commands.filter((command) => command.group === group)}
                  />
                ))}
              </Combobox.Content>
            </Combobox.Root>
            {message !== undefined && (
              <p role="status" className="palette-empty">
                {message}
              </p>
            )}
            <p className="palette-footer" aria-hidden>
              <Kbd keys={["↑", "↓"]} /> to move <Kbd keys={["↵"]} /> to open <Kbd keys={["esc"]} />{" "}
              to close
            </p>
          </Dialog.Content>
        </Dialog.Positioner>
      </Portal>
    </Dialog.Root>
  );
}

const groups = ["Applications", "Pages", "Actions"] as const;
const maxApplications = 6;
const maxSearch = maxLengthOf(ListApplicationsRequestSchema.field.q);

interface GroupProps {
  readonly title: string;
  readonly commands: readonly Command[];
}

function Group({ title, commands }: GroupProps) {
  return commands.length === 0 ? null : (
    <Combobox.ItemGroup>
      <Combobox.ItemGroupLabel className="menu-label">{title}</Combobox.ItemGroupLabel>
      {commands.map((command) => (
        <Combobox.Item key={command.value} item={command} className="menu-item">
          <command.icon size={iconSize} aria-hidden />
          <Combobox.ItemText className="palette-label">{command.label}</Combobox.ItemText>
          {command.details}
        </Combobox.Item>
      ))}
    </Combobox.ItemGroup>
  );
}

function commandFor({ id, name, type }: Application, navigate: (to: string) => void): Command {
  return {
    value: id,
    label: name,
    icon: AppWindow,
    group: "Applications",
    details: <Badge>{type}</Badge>,
    run: () => navigate(`/applications/${id}`),
  };
}

function commandForSession(id: string, navigate: (to: string) => void): Command {
  return {
    value: "session",
    label: `Open the session ${shortId(id)}`,
    icon: Timer,
    group: "Actions",
    run: () => navigate(`/sessions?session=${id}`),
  };
}

/** Opens the list, where a search that stopped can go on. */
function continueIn(navigate: (to: string) => void, text: string): Command {
  return {
    value: "continue",
    label: `Search for “${text.trim()}” in Applications`,
    icon: Search,
    group: "Applications",
    run: () => navigate(`/applications?${new URLSearchParams({ q: text.trim() })}`),
  };
}

function useCommands(openShortcuts: () => void): readonly Command[] {
  const access = useSignedInKey();
  const [, navigate] = useLocation();
  // An action must not replace an open dialog, which may show a new key.
  const [offered] = useState(() => (document.querySelector("[role=dialog]") ? [] : pageActions()));
  const action = (
    label: string,
    icon: LucideIcon,
    run: () => void,
    keywords?: string,
  ): Command => ({ value: label, label, keywords, icon, group: "Actions", run });
  const view = (label: string, icon: LucideIcon, path: string): Command => ({
    value: path,
    label,
    icon,
    group: "Pages",
    run: () => navigate(path),
  });
  return [
    ...pagesFor(access).map(
      ({ path, label, keywords, icon, key }): Command => ({
        value: path,
        label,
        keywords,
        icon,
        group: "Pages",
        details: <Kbd keys={["g", key]} />,
        run: () => navigate(path),
      }),
    ),
    ...(access.may("application:read")
      ? [
          view("Applications expiring soon", CalendarClock, "/applications?view=expiring"),
          view("Unused applications", Sprout, "/applications?view=unused"),
        ]
      : []),
    ...offered.map(({ label, icon, onSelect }) => action(label, icon, onSelect)),
    ...(access.may("application:create")
      ? [action("New application", Plus, () => navigate("/applications/new"))]
      : []),
    action(
      "Copy my application ID",
      Copy,
      () => void copyText(access.me.applicationId, "Application ID"),
    ),
    ...themes
      .filter((theme) => theme !== chosenTheme())
      .map((theme) => action(`Theme: ${themeNames[theme]}`, SunMoon, () => chooseTheme(theme))),
    action("Open the documentation", BookOpen, () => openTab("/docs"), "docs help"),
    action("Open the API reference", Braces, () => openTab("/docs/api"), "docs rest"),
    action("Keyboard shortcuts", Keyboard, openShortcuts),
    action("Sign out", LogOut, access.signOut),
  ];
}

function openTab(path: string): void {
  open(path, "_blank", "noreferrer");
}

/** Every word must occur in the label, the keywords or the group. */
function matching(commands: readonly Command[], text: string): readonly Command[] {
  return commands.filter(({ label, keywords = "", group }) =>
    containsWords(`${label} ${keywords} ${group}`, text),
  );
}
