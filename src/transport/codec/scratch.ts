const usualSize = 16 * 1024;
const largestKept = 1024 * 1024;

/** Bytes to write one message into, used again for the next, so that a field costs no allocation. */
export abstract class Scratch {
  protected bytes = Buffer.allocUnsafeSlow(usualSize);
  protected at = 0;

  /** Hands out a copy of what was written, after so many free bytes, and starts anew. */
  finish(headroom = 0): Buffer {
    const copy = Buffer.allocUnsafe(headroom + this.at);
    this.bytes.copy(copy, headroom, 0, this.at);
    this.reset();
    return copy;
  }

  /** Forgets what was written. */
  reset(): void {
    this.at = 0;
    if (this.bytes.length > largestKept) {
      this.bytes = Buffer.allocUnsafeSlow(usualSize);
    }
  }

  /** Makes room for so many bytes more. */
  protected reserve(more: number): void {
    const needed = this.at + more;
    if (needed > this.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.bytes.length));
      this.bytes.copy(grown, 0, 0, this.at);
      this.bytes = grown;
    }
  }
}
