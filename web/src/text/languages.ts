/**
 * Languages by their common names, loaded on demand.
 *
 * CodeMirror is loaded with the first language, so this module must import it only dynamically.
 */

import type { LanguageSupport } from "@codemirror/language";

type Load = () => Promise<LanguageSupport>;

const javascript = (config: { jsx?: boolean; typescript?: boolean }): Load => {
  return async () => (await import("@codemirror/lang-javascript")).javascript(config);
};

const LOADS: Record<string, Load> = {
  python: async () => (await import("@codemirror/lang-python")).python(),
  javascript: javascript({ jsx: true }),
  typescript: javascript({ typescript: true }),
  tsx: javascript({ jsx: true, typescript: true }),
  json: async () => (await import("@codemirror/lang-json")).json(),
  markdown: async () => (await import("@codemirror/lang-markdown")).markdown(),
  html: async () => (await import("@codemirror/lang-html")).html(),
  css: async () => (await import("@codemirror/lang-css")).css(),
  sql: async () => (await import("@codemirror/lang-sql")).sql(),
  yaml: async () => (await import("@codemirror/lang-yaml")).yaml(),
  shell: async () => {
    const [{ LanguageSupport, StreamLanguage }, { shell }] = await Promise.all([
      import("@codemirror/language"),
      import("@codemirror/legacy-modes/mode/shell"),
    ]);
    return new LanguageSupport(StreamLanguage.define(shell));
  },
};

const ALIASES: Record<string, string> = {
  py: "python",
  python3: "python",
  ipython: "python",
  pycon: "python",
  js: "javascript",
  jsx: "javascript",
  mjs: "javascript",
  cjs: "javascript",
  node: "javascript",
  ts: "typescript",
  mts: "typescript",
  cts: "typescript",
  jsonc: "json",
  json5: "json",
  jsonl: "json",
  ndjson: "json",
  md: "markdown",
  mdx: "markdown",
  htm: "html",
  xhtml: "html",
  svg: "html",
  xml: "html",
  scss: "css",
  less: "css",
  sqlite: "sql",
  postgresql: "sql",
  mysql: "sql",
  yml: "yaml",
  sh: "shell",
  bash: "shell",
  zsh: "shell",
  console: "shell",
  "shell-session": "shell",
};

const loaded = new Map<string, Promise<LanguageSupport | null>>();

/** The canonical name of a language, from a name or a file extension; null if it is not known. */
export function languageName(name: string): string | null {
  const given = name.trim().toLowerCase();
  const known = Object.hasOwn(ALIASES, given) ? (ALIASES[given] ?? given) : given;
  return Object.hasOwn(LOADS, known) ? known : null;
}

/** The CodeMirror support of a language; null if it is not known or cannot be loaded. */
export function loadLanguage(name: string): Promise<LanguageSupport | null> {
  const known = languageName(name);
  const load = known === null ? undefined : LOADS[known];
  if (known === null || load === undefined) return Promise.resolve(null);
  const before = loaded.get(known);
  if (before) return before;
  const promise = load().catch(() => {
    // The next block tries again.
    loaded.delete(known);
    return null;
  });
  loaded.set(known, promise);
  return promise;
}
