/** Stops the MongoDB that global-setup.ts started. In watch mode the next run starts a new one. */
export default async function teardown(): Promise<void> {
  if (globalThis.testMongod) {
    await globalThis.testMongod.stop();
    delete process.env.MONGODB_TEST_URI;
    globalThis.testMongod = undefined;
  }
}
