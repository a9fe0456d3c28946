/**
 * Asks Latchkey, as a browser would, whether a page may call it. Answers what
 * to do where it may not, which a browser never tells its users.
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
