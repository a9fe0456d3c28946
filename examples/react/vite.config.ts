import { defineConfig } from "vite";

const latchkey = process.env.LATCHKEY_URL ?? "http://localhost:8080";

/**
 * The development server forwards calls, so that the page and Latchkey have the same origin. A page
 * on another origin needs CORS_ORIGINS.
 */
export default defineConfig({
  server: {
    port: Number(process.env.PAGE_PORT ?? 5173),
    strictPort: true,
    proxy: { "/latchkey.v1.": latchkey },
  },
});
