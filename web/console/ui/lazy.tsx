import {
  type ButtonHTMLAttributes,
  type ComponentProps,
  type ComponentType,
  lazy,
  type ReactElement,
  type ReactNode,
  Suspense,
  useState,
} from "react";
import { callTimeoutMs, retryDelayMs, setOutage } from "./outage.js";

// biome-ignore lint/suspicious/noExplicitAny: pages have different props.
type AnyComponent = ComponentType<any>;
type Load<Component extends AnyComponent> = () => Promise<{ readonly default: Component }>;

const loads = new Set<() => Promise<unknown>>();
let isPreloading = false;

/** Registers a script for `preload`, and returns its loader. */
export function preloadable<Script>(load: () => Promise<Script>): () => Promise<Script> {
  loads.add(load);
  if (isPreloading) {
    preloadOne(load);
  }
  return load;
}

/** Loads all scripts, and those that they register, so that the console works during an outage. */
export function preload(): void {
  isPreloading = true;
  loads.forEach(preloadOne);
}

function preloadOne(load: () => Promise<unknown>): void {
  // Its first use retries.
  load().catch(() => undefined);
}

/** A page or a part of it whose script is loaded when it is first shown, or by `preload`. */
export function lazyComponent<Component extends AnyComponent>(
  load: Load<Component>,
): ComponentType<ComponentProps<Component>> {
  let loaded: Component | undefined;
  const loadOnce = preloadable(async () => {
    const script = await load();
    loaded = script.default;
    return script;
  });
  const Pending = lazy(() => loadWithRetry(loadOnce));
  return function LazyComponent(props) {
    // A loaded one is shown without a fallback. The choice stays, because a change would reset its state.
    const [Chosen] = useState<AnyComponent>(() => loaded ?? Pending);
    return <Chosen {...props} />;
  };
}

interface LoadOnClickProps {
  /** The button until its menu or popover, which has the same button, is loaded. */
  button(props: ButtonHTMLAttributes<HTMLButtonElement>): ReactElement;
  readonly popup: "menu" | "dialog";
  /** A lazy component that is open when it is mounted. */
  readonly children: ReactNode;
}

/** A button whose menu or popover is loaded when it is first opened. */
export function LoadOnClick({ button, popup, children }: LoadOnClickProps) {
  const [isWanted, setIsWanted] = useState(false);
  const closed = button({
    "aria-haspopup": popup,
    "aria-expanded": false,
    onClick: () => setIsWanted(true),
  });
  return isWanted ? <Suspense fallback={closed}>{children}</Suspense> : closed;
}

/** Retries while the service is unreachable. If it is reachable and has no such script, the load fails. */
async function loadWithRetry<Component extends AnyComponent>(load: Load<Component>) {
  for (let isServiceUp = false; ; ) {
    try {
      return await load();
    } catch (reason) {
      if (isServiceUp) {
        throw reason;
      }
    }
    isServiceUp = await fetch(location.pathname, {
      method: "HEAD",
      signal: AbortSignal.timeout(callTimeoutMs),
    }).then(
      ({ ok }) => ok,
      () => false,
    );
    setOutage(isServiceUp ? undefined : "unreachable");
    if (!isServiceUp) {
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs));
    }
  }
}
