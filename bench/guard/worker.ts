/** A process as a service has it that checks keys with a guard. */
import { answerOrders } from "../worker-process.js";
import type { GuardOrder, Revocation, Spending } from "./orders.js";
import { revoke } from "./revoke.js";
import { spend } from "./spend.js";

answerOrders<GuardOrder, readonly Revocation[] | Spending>((order) =>
  order.kind === "revoke" ? revoke(order) : spend(order),
);
