import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const server = process.env.LIMELIGHT_URL ?? "http://127.0.0.1:8000";

/** Writes a gzip copy of each file that compresses well. The server sends these copies and compresses nothing itself. */
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

/** Removes KaTeX's fonts in formats other than woff2, which every supported browser reads. */
const onlyNewFonts: Plugin = {
  name: "only-new-fonts",
  enforce: "pre",
  transform(code, id) {
    if (!/katex.*\.css/.test(id)) return null;
    return code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\([^)]*\)/g, "");
  },
};

export default defineConfig({
  // Relative, so that the page works under any root path.
  base: "./",
  plugins: [react(), onlyNewFonts, compressed],
  build: {
    outDir: "../src/limelight/page",
    emptyOutDir: true,
    target: "es2022",
    // The page's content security policy does not allow files as data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // One stylesheet. Vite never loads the stylesheet of a lazy part again after an attempt that failed.
    cssCodeSplit: false,
    // A test limits the first load to 400 kB compressed.
    chunkSizeWarningLimit: 1000,
  },
  server: {
    // Without `changeOrigin`: the server accepts only requests whose origin equals their host.
    proxy: Object.fromEntries(
      ["/agents", "/sessions", "/runs", "/artifacts", "/auth", "/health"]
        .map((path) => [path, { target: server }] as const)
        .concat([["/api", { target: server, ws: true } as { target: string }]]),
    ),
  },
  test: {
    restoreMocks: true,
    // A slow machine must not fail a test.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Creating a jsdom document takes longer than most tests. Other tests that need one name it in their first line.
    projects: [
      // Files share their imports, which would take longer than the tests.
      { extends: true, test: { name: "pure", environment: "node", isolate: false, include: ["src/**/*.test.ts"] } },
      { extends: true, test: { name: "components", environment: "jsdom", include: ["src/**/*.test.tsx"] } },
    ],
  },
});
