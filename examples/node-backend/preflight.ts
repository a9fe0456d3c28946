/** Sends a CORS preflight for the page. Returns instructions if Latchkey refuses it. */
export async function findCorsProblem(latchkey: string, page: string): Promise<string | undefined> {
  const headers = {
    Origin: page,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,svc-api-key",
  };
  const response = await fetch(`${latchkey}/sessions`, { method: "OPTIONS", headers }).catch(
    () => undefined,
  );
  if (!response) {
    return `Latchkey is not running at ${latchkey}. Start it, or set LATCHKEY_URL.`;
  }
  const allowed = response.headers.get("access-control-allow-origin");
  return allowed === page || allowed === "*"
    ? undefined
    : `Latchkey does not allow the origin ${page}. Start it with CORS_ORIGINS=${page}`;
}
