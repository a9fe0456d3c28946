/**
 * How long the current keys stay valid after a rotation, in milliseconds, unless the user chooses
 * otherwise: the same in the console and on the command line.
 */
export const defaultGracePeriodMs = 24 * 3_600_000;
