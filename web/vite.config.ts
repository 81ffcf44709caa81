import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const server = process.env.LIMELIGHT_URL ?? "http://127.0.0.1:8000";

/** A compressed twin beside each file that gets smaller by it: the server sends what is there, and compresses nothing. */
const compressed: Plugin = {
  name: "compressed",
  apply: "build",
  writeBundle({ dir = "" }, bundle) {
    for (const file of Object.values(bundle)) {
      const body = Buffer.from(file.type === "chunk" ? file.code : file.source);
      const small = gzipSync(body, { level: 9 });
      if (small.length < 0.9 * body.length) writeFileSync(join(dir, `${file.fileName}.gz`), small);
    }
  },
};

/** Every browser that runs this page knows woff2; KaTeX would bring two older forms of each font along. */
const onlyNewFonts: Plugin = {
  name: "only-new-fonts",
  enforce: "pre",
  transform(code, id) {
    if (!/katex.*\.css/.test(id)) return null;
    return code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\([^)]*\)/g, "");
  },
};

export default defineConfig({
  // Relative, so that the page works under any prefix that a proxy or a host application gives it.
  base: "./",
  plugins: [react(), onlyNewFonts, compressed],
  build: {
    outDir: "../src/limelight/page",
    emptyOutDir: true,
    target: "es2022",
    // Files as data: URLs would need an exception in the page's policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The first load is held to 400 kB compressed by a test.
    chunkSizeWarningLimit: 1000,
  },
  server: {
    // `changeOrigin` stays off: the server lets in pages whose origin is the host that is asked for.
    proxy: Object.fromEntries(
      ["/agents", "/sessions", "/runs", "/artifacts", "/auth", "/health"]
        .map((path) => [path, { target: server }] as const)
        .concat([["/api", { target: server, ws: true } as { target: string }]]),
    ),
  },
  test: {
    restoreMocks: true,
    // A document takes longer to make than most tests take: who draws has one, others ask for it in their first line.
    projects: [
      { extends: true, test: { name: "pure", environment: "node", include: ["src/**/*.test.ts"] } },
      { extends: true, test: { name: "drawn", environment: "jsdom", include: ["src/**/*.test.tsx"] } },
    ],
  },
});
