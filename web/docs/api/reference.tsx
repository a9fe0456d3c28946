import { KeyRound } from "lucide-react";
import { renderToStaticMarkup } from "react-dom/server";
import { openapi } from "../../../gen/openapi.js";
import { problemUri } from "../../../src/contract/problems.js";
import { json, printValue } from "../../../src/contract/samples/call.js";
import { createSamples } from "../../../src/contract/samples/samples.js";
import type { Page } from "../site/layout.js";
import type { Section } from "../site/markdown.js";
import { Code, MethodBadge, SampleTabs, Status } from "./elements.js";
import { Markdown } from "./markdown.js";
import {
  createExampleCall,
  exampleOrigin,
  listServices,
  type OpenApiDocument,
  type Operation,
  type OperationError,
  type Parameter,
  type Schema,
  type Service,
} from "./operations.js";
import { createdExample, Description, fieldsOf, Properties, Property } from "./schema.js";

const document = openapi as OpenApiDocument;
const { schemas } = document.components;
export const services = listServices(document);

export const apiScript = "docs/api/main.ts";

/** The reference of the REST API, made from the OpenAPI document. */
export function createApiPage(): Page {
  return {
    url: "/docs/api",
    title: "API reference",
    summary: "Every operation of the REST API, with samples in four languages.",
    html: renderToStaticMarkup(<Reference />),
    sidebar: services.map(({ id, title, operations }) => ({
      title,
      url: `#${id}`,
      links: operations.map(({ id, title, ...endpoint }) => ({ title, url: `#${id}`, endpoint })),
    })),
    filter: "operations",
    group: "API reference",
    sections: [introduction, ...services.flatMap(describeService)],
    kind: "api",
    script: apiScript,
  };
}

/** The sections that search finds: the introduction, the services, and the operations with their fields and errors. */
const introduction: Section = {
  heading: { level: 1, id: "api-reference", text: "API reference" },
  text: plain(document.info.description),
};

function describeService({ id, title, description, operations }: Service): Section[] {
  return [
    { heading: { level: 2, id, text: title }, text: plain(description) },
    ...operations.map(describeOperation),
  ];
}

function describeOperation(operation: Operation): Section {
  const { id, title, method, path, summary, description, access, body, response } = operation;
  const fieldsIn = (schema?: Schema) => (schema ? fieldsOf(schema, schemas) : []);
  const sent = [
    ...operation.parameters.map(({ name, description }) => [name, { description }] as const),
    ...fieldsIn(body?.schema),
  ];
  const text = [
    `${method} ${path}. ${summary}. ${description}`,
    access,
    ...sent.map(([, { description }]) => description),
    // The proto reference describes them, once for all operations.
    ...fieldsIn(response.schema).map(([name]) => name),
    ...operation.errors.map(({ code }) => code),
  ];
  return {
    heading: { level: 3, id, text: title },
    endpoint: `${method} ${path}`,
    names: sent.map(([name]) => name),
    text: plain(text.join(" ")),
  };
}

/** Markdown without the marks of code, emphasis, lists and links. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/`|\*+|^- /gm, "")
    .replaceAll(/\s+/g, " ");
}

function Reference() {
  const { info } = document;
  const whoAmI = services
    .flatMap(({ operations }) => operations)
    .find(({ id }) => id === "who-am-i");
  return (
    <div className="reference">
      <section className="entry">
        <div className="entry-text">
          <h1 id="api-reference">API reference</h1>
          <Markdown text={info.description} />
        </div>
        <div className="entry-code">
          <div className="card">
            <p className="card-title">Base URL</p>
            <p className="base-url">
              <code>{exampleOrigin}</code> <a href="/openapi.json">OpenAPI document</a>
            </p>
          </div>
          {whoAmI && <Samples operation={whoAmI} />}
        </div>
      </section>
      {services.map((service) => (
        <ServiceSection key={service.id} service={service} />
      ))}
    </div>
  );
}

function ServiceSection({
  service: { id, title, description, operations },
}: {
  readonly service: Service;
}) {
  return (
    <>
      <section className="entry service">
        <div className="entry-text">
          <h2 id={id}>
            <a className="anchor" href={`#${id}`}>
              {title}
            </a>
          </h2>
          <Markdown text={description} />
        </div>
        <div className="entry-code">
          <div className="card">
            <p className="card-title">Operations</p>
            <ul className="endpoints">
              {operations.map((operation) => (
                <li key={operation.id}>
                  <a className="endpoint-link" href={`#${operation.id}`}>
                    <MethodBadge method={operation.method} /> <code>{operation.path}</code>
                  </a>
                </li>
              ))}
            </ul>
          </div>
        </div>
      </section>
      {operations.map((operation) => (
        <OperationSection key={operation.id} operation={operation} />
      ))}
    </>
  );
}

function OperationSection({ operation }: { readonly operation: Operation }) {
  const { id, title, method, path, summary, description, access, body, response } = operation;
  const parametersIn = (place: Parameter["in"]) =>
    operation.parameters.filter((parameter) => parameter.in === place);
  return (
    <section className="entry operation" aria-labelledby={id}>
      <div className="entry-text">
        <h3 id={id}>
          <a className="anchor" href={`#${id}`}>
            {title}
          </a>
        </h3>
        <p className="endpoint">
          <MethodBadge method={method} /> <code>{path}</code>
        </p>
        <Markdown text={`${summary}. ${description}`} />
        <div className="access">
          <KeyRound />
          <Markdown text={access} />
        </div>
      </div>
      <div className="entry-code">
        <Samples operation={operation} />
        <ResponseExample operation={operation} />
      </div>
      <div className="entry-text details">
        <Parameters title="Path parameters" parameters={parametersIn("path")} />
        <Parameters title="Query parameters" parameters={parametersIn("query")} />
        {body && (
          <>
            <h4>Body{body.isForm && <span className="type"> form</span>}</h4>
            <Description schema={body.schema} schemas={schemas} />
            <Properties schema={body.schema} schemas={schemas} isRequest />
          </>
        )}
        <Parameters title="Headers" parameters={parametersIn("header")} />
        <h4>
          Response <Status status={response.status} />
        </h4>
        <Markdown text={response.description} />
        {response.schema && <Properties schema={response.schema} schemas={schemas} />}
        <Errors errors={operation.errors} />
      </div>
    </section>
  );
}

function Parameters({
  title,
  parameters,
}: {
  readonly title: string;
  readonly parameters: readonly Parameter[];
}) {
  return (
    parameters.length > 0 && (
      <>
        <h4>{title}</h4>
        <ul className="properties">
          {parameters.map(({ name, required, description, schema }) => (
            <Property
              key={name}
              name={name}
              schema={{ ...schema, description }}
              isRequired={required}
              schemas={schemas}
            />
          ))}
        </ul>
      </>
    )
  );
}

/** Errors that do not depend on the operation have these statuses. */
const commonStatuses = ["413", "414", "415", "429", "431", "500", "503", "504"];

function Errors({ errors }: { readonly errors: readonly OperationError[] }) {
  const isCommon = ({ status }: OperationError) => commonStatuses.includes(status);
  const common = errors.filter(isCommon);
  return (
    <>
      <h4>Errors</h4>
      <ErrorList errors={errors.filter((error) => !isCommon(error))} />
      {common.length > 0 && (
        <details>
          <summary>{`${common.length} common errors`}</summary>
          <ErrorList errors={common} />
        </details>
      )}
    </>
  );
}

function ErrorList({ errors }: { readonly errors: readonly OperationError[] }) {
  return (
    <ul className="errors">
      {errors.map(({ status, code, title }) => (
        <li key={code}>
          <Status status={status} />
          <a href={problemUri(code)}>
            <code>{code}</code>
          </a>
          <span>{title}</span>
        </li>
      ))}
    </ul>
  );
}

function Samples({ operation }: { readonly operation: Operation }) {
  return (
    <div className="card samples">
      {/* Needs script. */}
      <button type="button" className="try-button" data-try={operation.id} hidden>
        Try it
      </button>
      <SampleTabs samples={createSamples(createExampleCall(operation, exampleOrigin))} />
    </div>
  );
}

function ResponseExample({ operation }: { readonly operation: Operation }) {
  const { response } = operation;
  const example = createdExample(operation, schemas);
  return (
    <div className="card">
      <p className="card-title">
        Response <Status status={response.status} />
      </p>
      {example === undefined ? (
        <p className="no-body">No body</p>
      ) : (
        <div className="code">
          <Code code={printValue(example, json)} language="json" />
        </div>
      )}
    </div>
  );
}
