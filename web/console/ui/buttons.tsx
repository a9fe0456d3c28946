import { Portal } from "@ark-ui/react/portal";
import { Tooltip as Ark } from "@ark-ui/react/tooltip";
import { Check, Copy, type LucideIcon } from "lucide-react";
import { type ComponentProps, type ReactElement, type ReactNode, useState } from "react";
import { Link } from "wouter";
import { copy as copyToClipboard } from "../../common/clipboard.js";

interface ButtonLook {
  /** `primary` once per view, `danger` for actions that revoke or delete, `quiet` inside other elements. */
  readonly tone?: "primary" | "plain" | "danger" | "quiet";
  readonly size?: "small" | "medium";
  readonly icon?: LucideIcon;
}

interface ButtonProps extends ComponentProps<"button">, ButtonLook {
  /** Shows a spinner and disables the button. */
  readonly isBusy?: boolean;
}

export function Button({
  tone = "plain",
  size = "medium",
  icon: Icon,
  isBusy = false,
  "aria-busy": ariaBusy = isBusy,
  disabled,
  type = "button",
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      className="button"
      data-tone={tone}
      data-size={size}
      aria-busy={ariaBusy || undefined}
      disabled={disabled || isBusy}
    >
      {Icon && <Icon size={iconSize} aria-hidden />}
      {children}
    </button>
  );
}

/** The size of icons in controls, in pixels. */
export const iconSize = 16;

interface ButtonLinkProps extends ButtonLook {
  /** A path of the console. */
  readonly href: string;
  readonly children: ReactNode;
}

/** A link to a page of the console that looks like a button. */
export function ButtonLink({ tone, size, icon: Icon, href, children }: ButtonLinkProps) {
  return (
    <Link className="button" data-tone={tone ?? "plain"} data-size={size ?? "medium"} href={href}>
      {Icon && <Icon size={iconSize} aria-hidden />}
      {children}
    </Link>
  );
}

interface IconButtonProps extends Omit<ComponentProps<"button">, "children"> {
  readonly icon: LucideIcon;
  /** The accessible name, also shown as a tooltip. */
  readonly label: string;
}

/** A button with only an icon, such as Close or Remove. */
export function IconButton({ icon: Icon, label, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <button {...rest} type="button" className="icon-button" aria-label={label}>
        <Icon size={iconSize} aria-hidden />
      </button>
    </Tooltip>
  );
}

interface TooltipProps {
  readonly text: string;
  /** The element that has the tooltip. It must have its own accessible name. */
  readonly children: ReactElement;
}

/** A short text beside an element while the pointer or the focus is on it. */
function Tooltip({ text, children }: TooltipProps) {
  return (
    <Ark.Root openDelay={400} closeDelay={0} lazyMount unmountOnExit positioning={tooltipPosition}>
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

const tooltipPosition = { placement: "top", gutter: 6 } as const;

interface CopyButtonProps {
  readonly text: string;
  readonly label?: string;
  /** Shows only the icon. The label is its accessible name and its tooltip. */
  readonly isCompact?: boolean;
}

/** Copies text to the clipboard and confirms it. */
export function CopyButton({ text, label = "Copy", isCompact = false }: CopyButtonProps) {
  const [outcome, setOutcome] = useState<"copied" | "failed">();
  const icon = outcome === "copied" ? Check : Copy;

  async function copy(): Promise<void> {
    setOutcome((await copyToClipboard(text)) ? "copied" : "failed");
    setTimeout(() => setOutcome(undefined), 3_000);
  }

  return (
    <>
      {isCompact ? (
        <IconButton icon={icon} label={label} onClick={copy} />
      ) : (
        <Button icon={icon} onClick={copy}>
          {outcome === "copied" ? "Copied" : label}
        </Button>
      )}
      <span role="status" className={outcome === "failed" ? "hint" : "visually-hidden"}>
        {outcome === "copied" && "Copied"}
        {outcome === "failed" && "Copying is blocked by the browser. Select the text and copy it."}
      </span>
    </>
  );
}
