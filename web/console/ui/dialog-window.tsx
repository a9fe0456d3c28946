import { Dialog as Ark } from "@ark-ui/react/dialog";
import { Portal } from "@ark-ui/react/portal";
import { X } from "lucide-react";
import type { ReactNode } from "react";
import { iconSize } from "./buttons.js";
import { RateLimitNotice } from "./rate-limit-notice.js";

export interface DialogProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Whether Escape and the close button close it. */
  readonly isDismissible?: boolean;
  onClose(): void;
}

/** The window of a dialog. Its script is loaded with the first dialog. */
export default function DialogWindow(props: DialogProps) {
  const { title, children, isDismissible = true, onClose } = props;
  return (
    <Ark.Root
      open
      onOpenChange={({ open }) => !open && onClose()}
      closeOnEscape={isDismissible}
      closeOnInteractOutside={false}
    >
      <Portal>
        <Ark.Backdrop className="dialog-backdrop" />
        <Ark.Positioner className="dialog-positioner">
          <Ark.Content className="dialog">
            <Ark.Title asChild>
              <h2>{title}</h2>
            </Ark.Title>
            {children}
            {/* The page behind cannot be reached. */}
            <RateLimitNotice />
            {/* Last, so that the first focus goes to the content. */}
            {isDismissible && (
              <Ark.CloseTrigger className="icon-button dialog-close" aria-label="Close">
                <X size={iconSize} aria-hidden />
              </Ark.CloseTrigger>
            )}
          </Ark.Content>
        </Ark.Positioner>
      </Portal>
    </Ark.Root>
  );
}
