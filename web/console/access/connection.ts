import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { sendKey } from "../../../src/client/client.js";
import { retryLost } from "../../../src/client/retry.js";
import { defaultKeyHeader } from "../../../src/key-header.js";

const url = location.origin;

interface ConnectionOptions {
  readonly key: string;
  /** Called when the service says that the key does not work any more. */
  readonly onKeyRefused?: (reason: ConnectError) => void;
  /** Called with each call: whether it reached the service. */
  readonly onReach?: (isReached: boolean) => void;
}

/** Calls the service that this page came from, with the key of the person. */
export function connect({ key, onKeyRefused, onReach }: ConnectionOptions): Transport {
  const keyHeader = keyHeaderOfService();
  const options = { url, key, keyHeader };
  return createConnectTransport({
    baseUrl: url,
    useHttpGet: false,
    interceptors: [watchCalls({ onKeyRefused, onReach }), retryLost(), sendKey(options)],
  });
}

type Watchers = Pick<ConnectionOptions, "onKeyRefused" | "onReach">;

function watchCalls({
  onKeyRefused,
  onReach,
}: { [K in keyof Watchers]: Watchers[K] | undefined }): Interceptor {
  return (next) => async (request) => {
    try {
      const answer = await next(request);
      onReach?.(true);
      return answer;
    } catch (thrown) {
      const error = ConnectError.from(thrown);
      if (!request.signal.aborted) {
        onReach?.(!isUnreached(error));
      }
      if (error.code === Code.Unauthenticated) {
        onKeyRefused?.(error);
      }
      throw error;
    }
  };
}

/** Browsers say nothing more of a call that did not come through. */
function isUnreached({ code, cause }: ConnectError): boolean {
  return cause instanceof TypeError || (code === Code.Unavailable && cause === undefined);
}

/** The service tells in the page which header it reads keys from. */
function keyHeaderOfService(): string {
  const fact = document.querySelector<HTMLMetaElement>('meta[name="key-header"]');
  return fact?.content ?? defaultKeyHeader;
}
