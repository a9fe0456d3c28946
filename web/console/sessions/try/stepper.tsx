import { steps } from "./flow.js";

/** Where the person is on the way. */
export function Stepper({ step }: { readonly step: number }) {
  return (
    <ol className="stepper" aria-label="Steps">
      {steps.map((title, place) => (
        <li key={title} aria-current={place === step ? "step" : undefined} data-done={place < step}>
          <span className="step-number" aria-hidden="true">
            {place < step ? "✓" : place + 1}
          </span>
          {title}
          {place < step && <span className="unseen">, done</span>}
        </li>
      ))}
    </ol>
  );
}
