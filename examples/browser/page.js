// A page that uses Latchkey with plain fetch. examples/node-backend serves it and its backend.
// The session key stays in memory: never put it in a URL, a cookie or browser storage, where other
// scripts or the next user could read it.

const { latchkey, backend, publicKey } = await (await fetch("settings.json")).json();
const form = document.querySelector("#login");
const steps = document.querySelector("#steps");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  steps.replaceChildren();
  const customer = new FormData(form).get("customer");
  try {
    await showCardsOf(customer);
  } catch (error) {
    report(error.message);
  }
});

async function showCardsOf(customer) {
  await signIn(customer);
  report(`Signed in as ${customer}.`);

  const session = await openSession();
  report("Opened a session. Its key does nothing yet.");

  await sendNonce(session.nonce);
  report("The backend authorized it.");

  const self = await (await withKey(session.session_key, `${latchkey}/whoami`)).json();
  report(`Session permissions: ${self.rules.map(describeRule).join(", ")}.`);

  for (const owner of ["anna", "ben"]) {
    const url = `${backend}/customers/${owner}/cards/card-1`;
    const response = await withKey(session.session_key, url);
    const { number, detail } = await response.json();
    report(`Card of ${owner}: ${number ?? `${response.status}, ${detail}`}`);
  }
}

/** `credentials: "include"` accepts the login cookie of the backend. */
async function signIn(customer) {
  await post(`${backend}/login`, { customer }, { credentials: "include" });
}

/** The public key is no secret: it can only open sessions. */
async function openSession() {
  const response = await post(
    `${latchkey}/sessions`,
    {},
    { headers: { "SVC-API-KEY": publicKey } },
  );
  return response.json();
}

/** The nonce identifies the session without revealing its key. */
async function sendNonce(nonce) {
  await post(`${backend}/latchkey-session`, { nonce }, { credentials: "include" });
}

function withKey(key, url) {
  return fetch(url, { headers: { "SVC-API-KEY": key }, cache: "no-store" });
}

async function post(url, body, { headers, ...options }) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
    ...options,
  });
  if (!response.ok) {
    const { detail = response.statusText } = await response.json().catch(() => ({}));
    throw new Error(`${new URL(url).pathname}: ${response.status}, ${detail}`);
  }
  return response;
}

function describeRule({ permissions, transform, conditions }) {
  const where = conditions.map(({ attribute, operator, value }) =>
    [attribute, operator, value].join(" "),
  );
  return `${permissions.join(", ")} (${transform}) where ${where.join(" and ")}`;
}

function report(text) {
  const item = document.createElement("li");
  item.textContent = text;
  steps.append(item);
}
