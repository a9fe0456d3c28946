import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { createSamples } from "../../../src/contract/samples/samples.js";
import { keyHeader } from "../../common/key-header.js";
import { serviceUrl } from "../sign-in/connection.js";
import { CodeTabs } from "../ui/code.js";

/** The first call with a new key. The key is in a variable, so that it does not end up in source code. */
export default function KeySamples({ application }: { readonly application: Application }) {
  const [origin] = application.allowedOrigins;
  const samples = createSamples({
    origin: serviceUrl,
    method: "GET",
    path: "/whoami",
    keyHeader,
    ...(origin !== undefined && { headers: { Origin: origin } }),
  });
  return (
    <section className="key-samples" aria-label="Try the key">
      <h3>Try the key</h3>
      <p className="hint">
        The samples read the key from the variable <code>SVC_API_KEY</code>, so that it does not end
        up in source code.
      </p>
      <CodeTabs label="Language" samples={samples} />
    </section>
  );
}
