/**
 * Skews the clock of a process by a number of milliseconds:
 *
 *     NODE_OPTIONS=--import=…/skew-clock.mjs CLOCK_SKEW=-300000 node …
 *
 * Only the wall clock changes. Timers and monotonic clocks stay right.
 */
const skew = Number(process.env.CLOCK_SKEW);
const RealDate = Date;
const now = () => RealDate.now() + skew;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length > 0 ? args : [now()], newTarget),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});
