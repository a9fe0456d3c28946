import { defineConfig } from "vite";

const latchkey = process.env.LATCHKEY_URL ?? "http://localhost:8080";

/**
 * The development server proxies calls, so that page and Latchkey have the same origin. For a page
 * with another origin, set CORS_ORIGINS of Latchkey.
 */
export default defineConfig({
  server: {
    port: Number(process.env.PAGE_PORT ?? 5173),
    strictPort: true,
    proxy: { "/latchkey.v1.": latchkey },
  },
});
