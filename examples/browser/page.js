// Uses Latchkey from a page, only with fetch. examples/node-backend serves the page and its backend.
// The session key stays in a local variable: not in a URL, a cookie or browser storage, where other
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
    tell(error.message);
  }
});

async function showCardsOf(customer) {
  await signIn(customer);
  tell(`Signed in as ${customer}.`);

  const session = await openSession();
  tell("Opened a session. Its key does nothing yet.");

  await handOver(session.nonce);
  tell("The backend authorized it.");

  const self = await (await withKey(session.session_key, `${latchkey}/whoami`)).json();
  tell(`The session may: ${self.rules.map(inWords).join(", ")}.`);

  for (const owner of ["anna", "ben"]) {
    const url = `${backend}/customers/${owner}/cards/card-1`;
    const answer = await withKey(session.session_key, url);
    const { number, detail } = await answer.json();
    tell(`The card of ${owner}: ${number ?? `${answer.status}, ${detail}`}`);
  }
}

/** The cookie of the customer is only sent with credentials. */
async function signIn(customer) {
  await post(`${backend}/login`, { customer }, { credentials: "include" });
}

/** The public key may be seen by everybody: it only opens sessions. */
async function openSession() {
  const answer = await post(`${latchkey}/sessions`, {}, { headers: { "SVC-API-KEY": publicKey } });
  return answer.json();
}

/** The nonce identifies the session without revealing its key. */
async function handOver(nonce) {
  await post(`${backend}/latchkey-session`, { nonce }, { credentials: "include" });
}

function withKey(key, url) {
  return fetch(url, { headers: { "SVC-API-KEY": key }, cache: "no-store" });
}

async function post(url, body, { headers, ...options }) {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
    ...options,
  });
  if (!answer.ok) {
    const { detail = answer.statusText } = await answer.json().catch(() => ({}));
    throw new Error(`${new URL(url).pathname}: ${answer.status}, ${detail}`);
  }
  return answer;
}

function inWords({ permissions, transform, conditions }) {
  const where = conditions.map(({ attribute, operator, value }) =>
    [attribute, operator, value].join(" "),
  );
  return `${permissions.join(", ")} (${transform}) where ${where.join(" and ")}`;
}

function tell(text) {
  const item = document.createElement("li");
  item.textContent = text;
  steps.append(item);
}
