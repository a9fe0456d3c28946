import { problemOf } from "../../../src/contract/problem-report.js";

/** What the service said of a call that it refused, with the id to find it by. Nothing where nothing was thrown. */
export function Problem({ of: thrown }: { readonly of: unknown }) {
  if (thrown === undefined || thrown === null) {
    return null;
  }
  const { detail, errors, requestId } = problemOf(thrown);
  return (
    <div role="alert" className="notice" data-tone="danger">
      <p>{detail}</p>
      {Object.keys(errors).length > 0 && (
        <ul>
          {Object.entries(errors).map(([field, messages]) => (
            <li key={field}>
              <code>{field}</code> {messages.join(", ")}
            </li>
          ))}
        </ul>
      )}
      {requestId !== undefined && (
        <p className="hint">
          Request <code>{requestId}</code>
        </p>
      )}
    </div>
  );
}
