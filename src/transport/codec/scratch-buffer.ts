const initialSize = 16 * 1024;
const maxRetainedSize = 1024 * 1024;

/** A buffer that messages are written to one after the other, so that fields need no allocations. */
export abstract class ScratchBuffer {
  protected bytes = Buffer.allocUnsafeSlow(initialSize);
  protected at = 0;

  /** Returns a copy of the written bytes, after `headroom` free bytes, and resets the buffer. */
  finish(headroom = 0): Buffer {
    const copy = Buffer.allocUnsafe(headroom + this.at);
    this.bytes.copy(copy, headroom, 0, this.at);
    this.reset();
    return copy;
  }

  reset(): void {
    this.at = 0;
    if (this.bytes.length > maxRetainedSize) {
      this.bytes = Buffer.allocUnsafeSlow(initialSize);
    }
  }

  /** Grows the buffer if necessary. */
  protected reserve(more: number): void {
    const needed = this.at + more;
    if (needed > this.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.bytes.length));
      this.bytes.copy(grown, 0, 0, this.at);
      this.bytes = grown;
    }
  }
}
