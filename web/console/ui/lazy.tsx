import {
  type ButtonHTMLAttributes,
  type ComponentProps,
  type ComponentType,
  lazy,
  type ReactElement,
  type ReactNode,
  useEffect,
  useRef,
  useState,
} from "react";
import { Button } from "./buttons.js";
import { createLoader } from "./preload.js";
import { toast } from "./toast.js";

// biome-ignore lint/suspicious/noExplicitAny: components have different props.
type AnyComponent = ComponentType<any>;

/** The script of a component. */
export interface LazyScript {
  isLoaded(): boolean;
  load(): Promise<unknown>;
}

/** A page or a part of it whose script is loaded when it is first shown, or by `preload`. */
export function lazyComponent<Component extends AnyComponent>(
  load: () => Promise<{ readonly default: Component }>,
): ComponentType<ComponentProps<Component>> & LazyScript {
  let loaded: Component | undefined;
  const loader = createLoader(async () => {
    const script = await load();
    loaded = script.default;
    return script;
  });
  const Pending = lazy(loader);
  function LazyComponent(props: ComponentProps<Component>) {
    // A loaded one is shown without a fallback. The choice stays, because a change would reset its state.
    const [Chosen] = useState<AnyComponent>(() => loaded ?? Pending);
    return <Chosen {...props} />;
  }
  return Object.assign(LazyComponent, { isLoaded: () => loaded !== undefined, load: loader });
}

const notLoaded = {
  title: "This cannot be shown",
  description: "The service may have been updated. Save your changes and reload the page.",
  tone: "danger",
} as const;

/** Loads a script before `open` is called. If it cannot be loaded, a message says so. */
export function useOpen<Args extends unknown[]>(script: LazyScript, open: (...args: Args) => void) {
  const [isLoading, setIsLoading] = useState(false);
  /** Undefined after the button is removed. */
  const latest = useRef<(...args: Args) => void>(undefined);
  useEffect(() => {
    latest.current = open;
    return () => {
      latest.current = undefined;
    };
  });

  async function load(args: Args): Promise<void> {
    setIsLoading(true);
    try {
      await script.load();
      latest.current?.(...args);
    } catch {
      if (latest.current) {
        toast(notLoaded);
      }
    } finally {
      setIsLoading(false);
    }
  }

  function run(...args: Args): void {
    if (script.isLoaded()) {
      open(...args);
    } else if (!isLoading) {
      void load(args);
    }
  }

  return { isLoading, run };
}

interface OpenButtonProps extends Omit<ComponentProps<typeof Button>, "onClick"> {
  readonly script: LazyScript;
  onOpen(): void;
}

/** A button that shows a lazy component. It keeps the focus until the script is loaded. */
export function OpenButton({ script, onOpen, ...button }: OpenButtonProps) {
  const { isLoading, run } = useOpen(script, onOpen);
  return <Button {...button} aria-busy={isLoading} onClick={() => run()} />;
}

interface LoadOnClickProps {
  readonly script: LazyScript;
  /** The button until its menu or popover, which has the same button, is opened. */
  button(props: ButtonHTMLAttributes<HTMLButtonElement>): ReactElement;
  readonly popup: "menu" | "dialog";
  /** The component of the script. It is open when it is mounted. */
  readonly children: ReactNode;
}

/** A button whose menu or popover is loaded when it is first opened. */
export function LoadOnClick({ script, button, popup, children }: LoadOnClickProps) {
  const [isOpened, setIsOpened] = useState(false);
  const { isLoading, run } = useOpen(script, () => setIsOpened(true));
  return isOpened
    ? children
    : button({
        "aria-haspopup": popup,
        "aria-expanded": false,
        "aria-busy": isLoading || undefined,
        onClick: () => run(),
      });
}
