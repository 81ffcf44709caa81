/**
 * Table of programming languages by their common names. Their parsers are loaded on demand.
 *
 * CodeMirror is loaded with the first language, so this module must import it only dynamically.
 */

import type { LanguageSupport } from "@codemirror/language";

type Load = () => Promise<LanguageSupport>;

const javascript = (config: { jsx?: boolean; typescript?: boolean }): Load => {
  return async () => (await import("@codemirror/lang-javascript")).javascript(config);
};

const shell: Load = async () => {
  const [{ LanguageSupport, StreamLanguage }, mode] = await Promise.all([
    import("@codemirror/language"),
    import("@codemirror/legacy-modes/mode/shell"),
  ]);
  return new LanguageSupport(StreamLanguage.define(mode.shell));
};

interface Language {
  /** The file extension, without a dot. */
  readonly extension: string;
  readonly aliases: readonly string[];
  readonly load: Load;
}

const LANGUAGES: Record<string, Language> = {
  python: {
    extension: "py",
    aliases: ["python3", "ipython", "pycon"],
    load: async () => (await import("@codemirror/lang-python")).python(),
  },
  javascript: { extension: "js", aliases: ["jsx", "mjs", "cjs", "node"], load: javascript({ jsx: true }) },
  typescript: { extension: "ts", aliases: ["mts", "cts"], load: javascript({ typescript: true }) },
  tsx: { extension: "tsx", aliases: [], load: javascript({ jsx: true, typescript: true }) },
  json: {
    extension: "json",
    aliases: ["jsonc", "json5", "jsonl", "ndjson"],
    load: async () => (await import("@codemirror/lang-json")).json(),
  },
  markdown: {
    extension: "md",
    aliases: ["mdx"],
    load: async () => (await import("@codemirror/lang-markdown")).markdown(),
  },
  html: {
    extension: "html",
    aliases: ["htm", "xhtml", "svg", "xml"],
    load: async () => (await import("@codemirror/lang-html")).html(),
  },
  css: { extension: "css", aliases: ["scss", "less"], load: async () => (await import("@codemirror/lang-css")).css() },
  sql: {
    extension: "sql",
    aliases: ["sqlite", "postgresql", "mysql"],
    load: async () => (await import("@codemirror/lang-sql")).sql(),
  },
  yaml: { extension: "yaml", aliases: ["yml"], load: async () => (await import("@codemirror/lang-yaml")).yaml() },
  shell: { extension: "sh", aliases: ["bash", "zsh", "console", "shell-session"], load: shell },
};

const NAMES = new Map(
  Object.entries(LANGUAGES).flatMap(([name, { extension, aliases }]) =>
    [name, extension, ...aliases].map((alias) => [alias, name]),
  ),
);

const loaded = new Map<string, Promise<LanguageSupport | null>>();

/** The canonical name of a language, from a name or a file extension; null if it is not known. */
export function languageName(name: string): string | null {
  return NAMES.get(name.trim().toLowerCase()) ?? null;
}

/** The file extension of a language; `txt` if the language is not known. */
export function fileExtension(language: string): string {
  return LANGUAGES[languageName(language) ?? ""]?.extension ?? "txt";
}

/** The CodeMirror support of a language; null if it is not known or cannot be loaded. */
export function loadLanguage(name: string): Promise<LanguageSupport | null> {
  const known = languageName(name) ?? "";
  const before = loaded.get(known);
  if (before) return before;
  const language = LANGUAGES[known];
  if (language === undefined) return Promise.resolve(null);
  const promise = language.load().catch(() => {
    // The next code block tries to load the language again.
    loaded.delete(known);
    return null;
  });
  loaded.set(known, promise);
  return promise;
}
