import { describe, expect, it } from "@jest/globals";
import { currentTick, yieldToEventLoop } from "../../src/lib/event-loop.js";

describe("yielding to the event loop", () => {
  it("resumes one computation per tick, and tenants in turn", async () => {
    const resumed: string[] = [];
    const ticks = new Set<number>();
    const wait = async (tenant?: string) => {
      await yieldToEventLoop(tenant);
      resumed.push(tenant ?? "unknown");
      ticks.add(currentTick());
    };
    const tenants = ["large", "large", "large", "other", "large", undefined, "other"];
    await Promise.all(tenants.map(wait));
    expect(resumed).toEqual(["large", "other", "unknown", "large", "other", "large", "large"]);
    expect(ticks.size).toBe(tenants.length);
  });

  it("resumes those that wait again after others of their tenant", async () => {
    const resumed: string[] = [];
    const run = async (tenant: string, name: string) => {
      for (let part = 1; part <= 2; part++) {
        await yieldToEventLoop(tenant);
        resumed.push(`${name}${part}`);
      }
    };
    await Promise.all([run("one", "a"), run("one", "b"), run("two", "c")]);
    expect(resumed).toEqual(["a1", "c1", "b1", "c2", "a2", "b2"]);
  });
});
