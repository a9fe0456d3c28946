import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "../../ui/button.js";

interface StepProps {
  readonly title: string;
  /** What happens here, and why. */
  readonly story: ReactNode;
  readonly children: ReactNode;
  /** What the button says that leads on. */
  readonly next?: string;
  /** Absent until the step is done. */
  readonly onNext?: (() => void) | undefined;
  /** Whether the person came here from another step. */
  readonly isArrival: boolean;
}

/** One step of the way. The focus goes to its title, so that nobody misses that it has come. */
export function Step({ title, story, children, next, onNext, isArrival }: StepProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the step comes.
  useEffect(() => {
    if (isArrival) {
      heading.current?.focus();
    }
  }, []);
  return (
    <section className="card step" aria-label={title}>
      <h2 ref={heading} tabIndex={-1}>
        {title}
      </h2>
      <div className="story">{story}</div>
      {children}
      {onNext && next !== undefined && (
        <div className="actions">
          <Button tone="primary" onClick={onNext}>
            {next}
          </Button>
        </div>
      )}
    </section>
  );
}
