/**
 * Gives a process a clock that is wrong, by so many milliseconds:
 *
 *     NODE_OPTIONS=--import=…/shift-clock.mjs CLOCK_SHIFT=-300000 node …
 *
 * Only the time of day moves. Timers and what only runs forward stay right, as
 * on a machine whose calendar was set badly.
 */
const shift = Number(process.env.CLOCK_SHIFT);
const RightDate = Date;
const now = () => RightDate.now() + shift;

globalThis.Date = new Proxy(RightDate, {
  construct: (target, args, made) =>
    Reflect.construct(target, args.length > 0 ? args : [now()], made),
  apply: () => new RightDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});
