import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = process.env.LIMELIGHT_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  // Relative, so that the page works under any prefix that a proxy or a host application gives it.
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../src/limelight/page",
    emptyOutDir: true,
    target: "es2022",
    // Files as data: URLs would need an exception in the page's policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: Object.fromEntries(
      ["/agents", "/sessions", "/runs", "/artifacts", "/health"]
        .map((path) => [path, { target: server }] as const)
        .concat([["/api", { target: server, ws: true } as { target: string }]]),
    ),
  },
  test: { environment: "jsdom", include: ["src/**/*.test.{ts,tsx}"], restoreMocks: true },
});
