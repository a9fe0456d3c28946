import { Menu as Ark, useMenu } from "@ark-ui/react/menu";
import { Portal } from "@ark-ui/react/portal";
import { Check, type LucideIcon } from "lucide-react";
import { Fragment, type ReactElement, type ReactNode, useEffect } from "react";
import { iconSize } from "./buttons.js";

export interface MenuAction {
  readonly label: string;
  readonly icon: LucideIcon;
  readonly tone?: "danger";
  onSelect(): void;
}

/** A choice of one of several values. */
interface MenuChoice {
  readonly label: string;
  readonly choices: readonly { readonly value: string; readonly label: string }[];
  readonly value: string;
  onChange(value: string): void;
}

interface MenuProps {
  /** The button that opens the menu. */
  readonly trigger: ReactElement;
  /** Text above the items. */
  readonly header?: ReactNode;
  /** A line separates the groups. */
  readonly groups: readonly (readonly MenuAction[] | MenuChoice)[];
  readonly placement?: "bottom-end" | "top-start";
  /** Opens it when it is mounted. */
  readonly opensOnMount?: boolean;
}

/** A button that opens a list of actions and choices. */
export function Menu(props: MenuProps) {
  const { trigger, header, groups, placement = "bottom-end", opensOnMount = false } = props;
  const menu = useMenu({ positioning: { placement, gutter: 4 } });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only on mount.
  useEffect(() => {
    if (opensOnMount) {
      menu.api.setOpen(true);
    }
  }, []);
  return (
    <Ark.RootProvider value={menu} lazyMount unmountOnExit>
      <Ark.Trigger asChild>{trigger}</Ark.Trigger>
      <Portal>
        <Ark.Positioner>
          <Ark.Content className="menu">
            {header !== undefined && <div className="menu-header">{header}</div>}
            {groups.map((group, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: groups have no id and keep their order.
              <Fragment key={index}>
                {(index > 0 || header !== undefined) && <Ark.Separator className="menu-line" />}
                {"choices" in group ? <Choice {...group} /> : <Actions actions={group} />}
              </Fragment>
            ))}
          </Ark.Content>
        </Ark.Positioner>
      </Portal>
    </Ark.RootProvider>
  );
}

function Actions({ actions }: { readonly actions: readonly MenuAction[] }) {
  return actions.map(({ label, icon: Icon, tone, onSelect }) => (
    <Ark.Item key={label} className="menu-item" data-tone={tone} value={label} onSelect={onSelect}>
      <Icon size={iconSize} aria-hidden />
      {label}
    </Ark.Item>
  ));
}

function Choice({ label, choices, value, onChange }: MenuChoice) {
  return (
    <Ark.RadioItemGroup value={value} onValueChange={(changed) => onChange(changed.value)}>
      <Ark.ItemGroupLabel className="menu-label">{label}</Ark.ItemGroupLabel>
      {choices.map((choice) => (
        <Ark.RadioItem
          key={choice.value}
          className="menu-item"
          value={choice.value}
          closeOnSelect={false}
        >
          <Ark.ItemText>{choice.label}</Ark.ItemText>
          <Ark.ItemIndicator className="menu-check">
            <Check size={iconSize} aria-hidden />
          </Ark.ItemIndicator>
        </Ark.RadioItem>
      ))}
    </Ark.RadioItemGroup>
  );
}
