import "./try.css";
import { X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { MethodBadge } from "../elements.js";
import {
  createCall,
  exampleClientKey,
  listServices,
  type OpenApiDocument,
  type Operation,
} from "../operations.js";
import { RequestForm, type RequestValues, startValues } from "./request-form.js";
import { RequestSample } from "./request-sample.js";
import { type CallResult, ResponseView, sendCall } from "./response-view.js";

/** Opens the dialog for an operation. */
export type OpenDialog = (id: string) => void;

/** Adds the dialog to the page. The document of the service names its key header. */
export async function createTryDialog(): Promise<OpenDialog> {
  const response = await fetch("/openapi.json");
  if (!response.ok) {
    throw new Error(`/openapi.json returned ${response.status}`);
  }
  const services = listServices((await response.json()) as OpenApiDocument);
  const operations = services.flatMap((service) => service.operations);
  const container = document.createElement("div");
  document.body.append(container);
  const root = createRoot(container);
  let count = 0;
  return (id) => {
    const operation = operations.find((candidate) => candidate.id === id);
    if (operation) {
      root.render(<TryDialog key={count++} operation={operation} />);
    }
  };
}

/** Typed keys stay in memory until the page is left. */
let typedKeys = { key: "", clientKey: "" };

function TryDialog({ operation }: { readonly operation: Operation }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [values, setValues] = useState<RequestValues>(() => ({
    ...startValues(operation),
    ...typedKeys,
  }));
  const output = useRef<HTMLDivElement>(null);
  const [result, setResult] = useState<CallResult | "pending">();
  const call = createCall(operation, location.origin, {
    parameters: values.parameters,
    body: values.body.value,
    clientKey: values.clientKey && exampleClientKey,
  });

  useEffect(() => dialog.current?.showModal(), []);

  useEffect(() => {
    if (result && result !== "pending") {
      // On a narrow screen it is below the form.
      output.current?.scrollIntoView({ block: "nearest" });
    }
  }, [result]);

  function change(next: RequestValues): void {
    typedKeys = { key: next.key, clientKey: next.clientKey };
    setValues(next);
  }

  async function send(): Promise<void> {
    setResult("pending");
    const { key, clientKey, parameters, body } = values;
    const sent = createCall(operation, location.origin, {
      parameters,
      body: body.value,
      clientKey,
    });
    setResult(await sendCall(sent, key));
  }

  return (
    <dialog ref={dialog} className="try" aria-labelledby="try-title">
      <header className="try-top">
        <h2 id="try-title">
          <MethodBadge method={operation.method} /> {operation.title}
        </h2>
        <button
          type="button"
          className="icon-button"
          aria-label="Close"
          onClick={() => dialog.current?.close()}
        >
          <X />
        </button>
      </header>
      <div className="try-columns">
        <RequestForm
          operation={operation}
          values={values}
          isPending={result === "pending"}
          onChange={change}
          onSend={() => void send()}
        />
        <div className="try-output">
          <RequestSample call={call} />
          <div ref={output}>
            <ResponseView result={result} />
          </div>
        </div>
      </div>
    </dialog>
  );
}
