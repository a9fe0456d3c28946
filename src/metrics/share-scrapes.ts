/** How long after one scrape the next begins at the earliest, in milliseconds. */
const pause = 100;

/**
 * Anyone may ask for metrics, so they are told one scrape at a time and with a
 * pause after each: nobody can keep the process busy by asking. What is told
 * is never older than the question: those who ask meanwhile share the next.
 */
export function shareScrapes<T>(scrape: () => Promise<T>): () => Promise<T> {
  let before: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;

  async function scrapeNext(): Promise<T> {
    await before;
    next = undefined;
    const scraped = scrape();
    before = scraped
      .catch(() => {})
      .then(() => new Promise((resolve) => setTimeout(resolve, pause).unref()));
    return scraped;
  }

  return () => {
    next ??= scrapeNext();
    return next;
  };
}
