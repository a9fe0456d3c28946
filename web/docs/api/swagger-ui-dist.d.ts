/** Types for the part of Swagger UI in use. The package has none. */
declare module "swagger-ui-dist/swagger-ui-es-bundle.js" {
  import type { ComponentType, createElement } from "react";

  // biome-ignore lint/suspicious/noExplicitAny: components have different props.
  type AnyComponent = ComponentType<any>;

  export interface System {
    /** The React instance of Swagger UI. Elements of another one do not work. */
    readonly React: { readonly createElement: typeof createElement };
  }

  export type Plugin = (system: System) => {
    readonly components?: Readonly<Record<string, AnyComponent>>;
    readonly wrapComponents?: Readonly<Record<string, (original: AnyComponent) => AnyComponent>>;
  };

  interface Options {
    readonly domNode: Element;
    readonly url: string;
    readonly layout: string;
    readonly plugins: readonly Plugin[];
    readonly validatorUrl: null;
    readonly deepLinking: boolean;
    readonly filter: boolean;
    readonly tryItOutEnabled: boolean;
    readonly persistAuthorization: boolean;
    readonly displayRequestDuration: boolean;
    readonly showExtensions: boolean;
    readonly defaultModelsExpandDepth: number;
    readonly onComplete: () => void;
  }

  export default function SwaggerUI(options: Options): void;
}
