import { Tabs as Ark } from "@ark-ui/react/tabs";
import type { ReactNode } from "react";

export interface Tab {
  readonly id: string;
  readonly label: ReactNode;
  readonly content: ReactNode;
}

interface TabsProps {
  /** The accessible name of the list of tabs. */
  readonly label: string;
  readonly tabs: readonly Tab[];
  /** The id of the current tab. The first tab without it. */
  readonly value?: string;
  onChange?(id: string): void;
}

/** Panels of which one is shown. Without `value`, it keeps the choice itself. */
export function Tabs({ label, tabs, value, onChange }: TabsProps) {
  return (
    <Ark.Root
      className="tabs"
      defaultValue={tabs[0]?.id ?? null}
      {...(value !== undefined && { value })}
      onValueChange={(changed) => onChange?.(changed.value)}
      lazyMount
      unmountOnExit
    >
      <Ark.List className="tab-list" aria-label={label}>
        {tabs.map(({ id, label: text }) => (
          <Ark.Trigger key={id} className="tab" value={id}>
            {text}
          </Ark.Trigger>
        ))}
      </Ark.List>
      {tabs.map(({ id, content }) => (
        <Ark.Content key={id} className="tab-panel" value={id}>
          {content}
        </Ark.Content>
      ))}
    </Ark.Root>
  );
}
