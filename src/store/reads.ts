/**
 * How a read makes sure that it sees all that was acknowledged before it
 * began. A primary may have been replaced and not know it yet, as when it was
 * cut off from its peers or frozen for a while; one that was just elected may
 * not know yet what the one before had acknowledged. A majority read believes
 * both. A linearizable one is answered only once a majority has confirmed that
 * the primary still is one and that they have what was read.
 */
export type Reads = "linearizable" | "majority";
