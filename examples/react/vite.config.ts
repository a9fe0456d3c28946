import { defineConfig } from "vite";

const latchkey = process.env.LATCHKEY_URL ?? "http://localhost:8080";

/**
 * The server of the page hands calls on, so that page and Latchkey have the same origin. A page
 * from elsewhere calls Latchkey itself, which is told of it by CORS_ORIGINS.
 */
export default defineConfig({
  server: {
    port: Number(process.env.PAGE_PORT ?? 5173),
    strictPort: true,
    proxy: { "/latchkey.v1.": latchkey },
  },
});
