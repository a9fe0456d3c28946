// A React page on Latchkey with connect-query:
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

/** The key is kept in memory only, and cached data is dropped with it. */
function Page() {
  const [key, setKey] = useState("");
  return key ? (
    <SignedIn key={key} apiKey={key} onLeave={() => setKey("")} />
  ) : (
    <KeyForm onKey={setKey} />
  );
}

function SignedIn({ apiKey, onLeave }: { readonly apiKey: string; readonly onLeave: () => void }) {
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
        <Self onLeave={onLeave} />
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
