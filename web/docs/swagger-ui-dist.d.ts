/** The part of Swagger UI that the page uses. The package has no types of its own. */
declare module "swagger-ui-dist/swagger-ui-es-bundle.js" {
  import type { ComponentType, createElement } from "react";

  // biome-ignore lint/suspicious/noExplicitAny: components differ in what they take.
  type AnyComponent = ComponentType<any>;

  export interface System {
    /** The React that Swagger UI shows its components with: elements of another one it does not know. */
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
