import { randomBytes } from "node:crypto";

export interface Logins {
  /** Answers the cookie that the customer is known by from now on, or nothing where there is none. */
  signIn(customer: string): string | undefined;
  customerOf(cookies: string | undefined): string | undefined;
}

/** Stands in for the login that your backend has, with its passwords. */
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
