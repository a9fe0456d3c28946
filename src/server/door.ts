import type { Awaitable } from "../awaitable.js";
import type { Exchange } from "./exchange.js";

/** What a door answers when it has served a request. */
export type Served = "served";
export const served: Served = "served";

/** Serves a request, or answers `undefined` where it is for another. */
export type Door = (exchange: Exchange) => Awaitable<Served> | undefined;
