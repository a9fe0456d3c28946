import { Toast as Ark, createToaster, Toaster } from "@ark-ui/react/toast";
import { CircleAlert, CircleCheck, X } from "lucide-react";
import { createRoot } from "react-dom/client";
import { iconSize } from "./buttons.js";

export interface ToastOptions {
  readonly title: string;
  readonly description?: string;
  readonly tone?: "good" | "danger";
  /** Adds an Undo button. The toast then stays longer. */
  readonly onUndo?: () => void;
}

const durationMs = 5_000;
const undoDurationMs = 10_000;

const toaster = createToaster({ placement: "bottom-end", gap: 8, pauseOnPageIdle: true });

/** Outside of the app, so that a message survives navigation. */
const host = document.body.appendChild(document.createElement("div"));
createRoot(host).render(
  <Toaster toaster={toaster}>
    {({ title, description, type, action }) => (
      <Ark.Root className="toast" data-tone={type === "error" ? "danger" : "good"}>
        {type === "error" ? (
          <CircleAlert size={iconSize} aria-hidden />
        ) : (
          <CircleCheck size={iconSize} aria-hidden />
        )}
        <div>
          <Ark.Title>{title}</Ark.Title>
          {description !== undefined && (
            <Ark.Description className="hint">{description}</Ark.Description>
          )}
        </div>
        {action && (
          <Ark.ActionTrigger className="button" data-size="small">
            {action.label}
          </Ark.ActionTrigger>
        )}
        <Ark.CloseTrigger className="icon-button" aria-label="Dismiss">
          <X size={14} aria-hidden />
        </Ark.CloseTrigger>
      </Ark.Root>
    )}
  </Toaster>,
);

export function showToast({ title, description, tone = "good", onUndo }: ToastOptions): void {
  toaster.create({
    title,
    description,
    type: tone === "danger" ? "error" : "success",
    duration: onUndo ? undoDurationMs : durationMs,
    ...(onUndo && { action: { label: "Undo", onClick: onUndo } }),
  });
}

export function dismissAll(): void {
  toaster.dismiss();
}
