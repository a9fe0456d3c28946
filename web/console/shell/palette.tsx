import { Combobox, createListCollection } from "@ark-ui/react/combobox";
import { Dialog } from "@ark-ui/react/dialog";
import { Portal } from "@ark-ui/react/portal";
import { useQuery } from "@connectrpc/connect-query";
import {
  Activity,
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
import { EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { maxLengthOf } from "../../../src/contract/fields.js";
import { problemOf } from "../../../src/contract/problem-report.js";
import { isId } from "../../../src/lib/uuid-text.js";
import { chooseTheme, chosenTheme, themes } from "../../common/theme.js";
import { containsWords } from "../../common/words.js";
import { kindInWords } from "../activity/event-words.js";
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
  readonly group: (typeof groups)[number];
  readonly details?: ReactNode;
  run(): void;
}

/** Finds applications, goes to pages and runs actions. The text is never in the URL. */
export default function Palette({ close, openShortcuts }: PaletteProps) {
  const [text, setText] = useState("");
  const [, navigate] = useLocation();
  const found = useApplicationSearch(text, { size: maxApplications });
  const byId = useItemsById(text.trim());
  const commands = [
    ...found.applications.map((application) => commandFor(application, navigate)),
    ...byId.commands,
    ...(found.isContinuing && !mayContainAnyKey(text) ? [searchIn(navigate, text)] : []),
    ...matching(useCommands(openShortcuts), text),
  ];
  const collection = createListCollection({ items: commands });

  const message =
    found.error !== undefined
      ? `Applications: ${problemOf(found.error).detail}`
      : found.isContinuing
        ? "Searching older applications…"
        : commands.length > 0
          ? undefined
          : found.isLoading || byId.isLoading
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

const groups = ["Applications", "Sessions and events", "Pages", "Actions"] as const;
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

/** The session or the event with an id, and the activity of the id. */
function useItemsById(id: string) {
  const { may } = useSignedInKey();
  const [, navigate] = useLocation();
  const enabled = (permission: string) => isId(id) && may(permission);
  const session = useQuery(
    SessionService.method.getSession,
    { id },
    { enabled: enabled("session:read"), gcTime: 0 },
  );
  const event = useQuery(
    EventService.method.getEvent,
    { id },
    { enabled: enabled("event:read"), gcTime: 0 },
  );
  const open = (label: string, icon: LucideIcon, path: string): Command => ({
    value: path,
    label,
    icon,
    group: "Sessions and events",
    run: () => navigate(path),
  });
  return {
    isLoading: session.isFetching || event.isFetching,
    commands: [
      ...(session.data && enabled("session:read")
        ? [open(`Open the session ${shortId(id)}`, Timer, `/sessions?session=${id}`)]
        : []),
      ...(event.data && enabled("event:read")
        ? [open(`Open the event: ${kindInWords(event.data.kind)}`, Activity, `/activity/${id}`)]
        : []),
      ...(enabled("event:read")
        ? [open(`Activity of ${shortId(id)}`, Activity, `/activity?principal=${id}`)]
        : []),
    ],
  };
}

/** Opens the list, which shows all that a search finds. */
function searchIn(navigate: (to: string) => void, text: string): Command {
  return {
    value: "search",
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
