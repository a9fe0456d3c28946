import { keyOf } from "../../support/api/api.js";
import type { ApiSubject } from "./subject.js";

/** Ways to get keys of every kind. */
export function keyHoldersOf({ server, api }: ApiSubject) {
  /** A tenant with an application of each type. */
  async function createTenant() {
    const root = await server().createTenant();
    const make = (type: string, permissions = ["token:read", "application:read"]) =>
      api().createApplication(root.key, { name: `${type} one`, type, permissions });
    const [privateOne, publicOne] = [await make("private"), await make("public")];
    return { root, make, privateKey: keyOf(privateOne), publicKey: keyOf(publicOne), publicOne };
  }

  async function openSession(tenant: Awaited<ReturnType<typeof createTenant>>) {
    const session = await api().createSession(tenant.publicKey);
    return { ...session, key: session.sessionKey };
  }

  return { createTenant, openSession };
}
