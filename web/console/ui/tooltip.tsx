import { Portal } from "@ark-ui/react/portal";
import { Tooltip as Ark } from "@ark-ui/react/tooltip";
import type { ReactElement } from "react";

interface TooltipProps {
  readonly text: string;
  /** The element that has the tooltip. It must have its own accessible name. */
  readonly children: ReactElement;
}

/** A short text beside an element while the pointer or the focus is on it. */
export function Tooltip({ text, children }: TooltipProps) {
  return (
    <Ark.Root openDelay={400} closeDelay={0} lazyMount unmountOnExit positioning={positioning}>
      <Ark.Trigger asChild>{children}</Ark.Trigger>
      <Portal>
        {/* It repeats the accessible name. */}
        <Ark.Positioner aria-hidden>
          <Ark.Content className="tooltip">{text}</Ark.Content>
        </Ark.Positioner>
      </Portal>
    </Ark.Root>
  );
}

const positioning = { placement: "top", gutter: 6 } as const;
