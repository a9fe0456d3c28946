/** Stops what global-setup.ts started; a run that follows, as in watch mode, starts anew. */
export default async function teardown(): Promise<void> {
  if (globalThis.testMongod) {
    await globalThis.testMongod.stop();
    delete process.env.MONGODB_TEST_URI;
    globalThis.testMongod = undefined;
  }
}
