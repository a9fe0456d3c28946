// A React page with connect-query:
//
//     npx vite examples/react
import { TransportProvider } from "@connectrpc/connect-query";
import { createConnectTransport } from "@connectrpc/connect-web";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import { Applications } from "./applications.js";
import { KeyForm } from "./key-form.js";
import { Self } from "./self.js";
import { sendKey } from "./send-key.js";

/** The key stays in memory. The query cache is dropped with it. */
function Page() {
  const [key, setKey] = useState("");
  return key ? (
    <SignedIn key={key} apiKey={key} onSignOut={() => setKey("")} />
  ) : (
    <KeyForm onKey={setKey} />
  );
}

function SignedIn({
  apiKey,
  onSignOut,
}: {
  readonly apiKey: string;
  readonly onSignOut: () => void;
}) {
  const queryClient = useMemo(
    () => new QueryClient({ defaultOptions: { queries: { retry: false } } }),
    [],
  );
  const transport = useMemo(
    () => createConnectTransport({ baseUrl: location.origin, interceptors: [sendKey(apiKey)] }),
    [apiKey],
  );
  return (
    <TransportProvider transport={transport}>
      <QueryClientProvider client={queryClient}>
        <Self onSignOut={onSignOut} />
        <Applications />
      </QueryClientProvider>
    </TransportProvider>
  );
}

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <Page />
    </StrictMode>,
  );
}
