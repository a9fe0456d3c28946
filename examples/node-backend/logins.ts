import { randomBytes } from "node:crypto";

export interface Logins {
  /** Returns the login cookie, or undefined for an unknown customer. */
  signIn(customer: string): string | undefined;
  customerOf(cookies: string | undefined): string | undefined;
}

/** Stands in for the login of your backend. */
export function createLogins(customers: readonly string[]): Logins {
  const signedIn = new Map<string, string>();
  return {
    signIn(customer) {
      if (!customers.includes(customer)) {
        return undefined;
      }
      const id = randomBytes(16).toString("hex");
      signedIn.set(id, customer);
      return `login=${id}; HttpOnly; SameSite=Strict; Path=/`;
    },

    customerOf(cookies = "") {
      const [, id = ""] = /(?:^|; )login=([0-9a-f]+)/.exec(cookies) ?? [];
      return signedIn.get(id);
    },
  };
}
