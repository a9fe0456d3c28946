/**
 * Sends the preflight request of a browser to Latchkey. Returns what to do if the page may not call
 * it, because browsers do not show the reason.
 */
export async function refusalOfPage(latchkey: string, page: string): Promise<string | undefined> {
  const headers = {
    Origin: page,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,svc-api-key",
  };
  const answer = await fetch(`${latchkey}/sessions`, { method: "OPTIONS", headers }).catch(
    () => undefined,
  );
  if (!answer) {
    return `There is no Latchkey at ${latchkey}. Start it, or set LATCHKEY_URL.`;
  }
  const allowed = answer.headers.get("access-control-allow-origin");
  return allowed === page || allowed === "*"
    ? undefined
    : `Latchkey does not let the page at ${page} call it. Start it with CORS_ORIGINS=${page}`;
}
