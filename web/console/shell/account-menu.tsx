import { Copy, Keyboard, LogOut } from "lucide-react";
import { type ReactElement, useSyncExternalStore } from "react";
import { chooseTheme, chosenTheme, onThemeChange, type Theme, themes } from "../../common/theme.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Menu } from "../ui/menu.js";
import { copyText } from "../ui/toast.js";

export const themeNames: Readonly<Record<Theme, string>> = {
  auto: "System",
  light: "Light",
  dark: "Dark",
};

interface AccountMenuProps {
  readonly trigger: ReactElement;
  openShortcuts(): void;
}

/** Theme, own id, shortcuts and sign-out. It is open when it is mounted. */
export default function AccountMenu({ trigger, openShortcuts }: AccountMenuProps) {
  const { me, signOut } = useSignedInKey();
  const theme = useSyncExternalStore(onThemeChange, chosenTheme);
  return (
    <Menu
      opensOnMount
      placement="top-start"
      trigger={trigger}
      groups={[
        {
          label: "Theme",
          choices: themes.map((value) => ({ value, label: themeNames[value] })),
          value: theme,
          onChange: (value) => chooseTheme(value as Theme),
        },
        [
          {
            label: "Copy my application ID",
            icon: Copy,
            onSelect: () => void copyText(me.applicationId, "Application ID"),
          },
          { label: "Keyboard shortcuts", icon: Keyboard, onSelect: openShortcuts },
        ],
        [{ label: "Sign out", icon: LogOut, onSelect: signOut }],
      ]}
    />
  );
}
