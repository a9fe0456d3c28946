/**
 * A bystander that has nothing to do with anybody, works a little now and
 * then, and notes for how long that took: the more others want of the machine,
 * the less of a core it gets. It tells how much whenever it is asked, and
 * begins anew.
 */
const pause = 100;
/** In milliseconds of a core: short enough to be no load, and longer than the system lets anybody go first. */
const work = 10;
let worked = 0;
let took = 0;

setInterval(() => {
  const begun = performance.now();
  const before = process.cpuUsage();
  let spent = 0;
  while (spent < work) {
    const { user, system } = process.cpuUsage(before);
    spent = (user + system) / 1000;
  }
  worked += spent;
  took += performance.now() - begun;
}, pause);

process.on("message", () => {
  process.send(took === 0 ? 1 : Math.min(1, worked / took));
  worked = 0;
  took = 0;
});
process.on("disconnect", () => process.exit());
process.send("ready");
