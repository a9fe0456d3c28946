import { day } from "../lib/time-units.js";

/** Applications that expire within this time count as expiring, in the overview and in the console. */
export const expiringDays = 30;

/** Applications that were not used for this time count as unused. */
export const unusedDays = 90;

/**
 * How long the current keys stay valid after a rotation, in milliseconds, unless the user chooses
 * otherwise: the same in the console and on the command line.
 */
export const defaultGracePeriodMs = day;
