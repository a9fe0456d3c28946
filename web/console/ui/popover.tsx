import { Popover as Ark } from "@ark-ui/react/popover";
import { Portal } from "@ark-ui/react/portal";
import { type ReactElement, type ReactNode, useEffect, useState } from "react";

interface PopoverProps {
  /** The button that opens the popover. */
  readonly trigger: ReactElement;
  readonly title: string;
  readonly children: ReactNode;
}

/**
 * A small panel beside a button, for example for filters. It is open when it is mounted. Escape and
 * a click outside close it.
 */
export function Popover({ trigger, title, children }: PopoverProps) {
  // Ark moves the focus into the popover only if it opens after the mount.
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => setIsOpen(true), []);
  return (
    <Ark.Root
      open={isOpen}
      onOpenChange={({ open }) => setIsOpen(open)}
      positioning={positioning}
      onEscapeKeyDown={(event) => {
        // The first Escape closes an open list in the popover.
        if ((event.target as Element).ariaExpanded === "true") {
          event.preventDefault();
        }
      }}
      lazyMount
      unmountOnExit
    >
      <Ark.Trigger asChild>{trigger}</Ark.Trigger>
      <Portal>
        <Ark.Positioner>
          <Ark.Content className="popover" aria-label={title}>
            <Ark.Title className="popover-title">{title}</Ark.Title>
            {children}
          </Ark.Content>
        </Ark.Positioner>
      </Portal>
    </Ark.Root>
  );
}

const positioning = { placement: "bottom-start", gutter: 4 } as const;
