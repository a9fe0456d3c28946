/** The part of autocannon that is used here. The package has no types. */
declare module "autocannon" {
  interface Options {
    readonly url: string;
    readonly connections: number;
    /** In seconds. */
    readonly duration: number;
    readonly requests: readonly {
      readonly path: string;
      readonly headers: Readonly<Record<string, string>>;
    }[];
  }

  interface Result {
    /** Connection errors and timeouts. */
    readonly errors: number;
  }

  interface Run extends Promise<Result> {
    on(
      event: "response",
      listener: (client: unknown, status: number, bytes: number, milliseconds: number) => void,
    ): this;
  }

  export default function autocannon(options: Options): Run;
}
