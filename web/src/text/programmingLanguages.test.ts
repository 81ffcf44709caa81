import { expect, test } from "vitest";
import { languageName, loadLanguage } from "./programmingLanguages";

test.each([
  ["python", "python"],
  ["Py", "python"],
  ["jsx", "javascript"],
  ["ts", "typescript"],
  ["tsx", "tsx"],
  ["jsonl", "json"],
  ["md", "markdown"],
  ["html", "html"],
  ["css", "css"],
  ["sqlite", "sql"],
  [" yml ", "yaml"],
  ["bash", "shell"],
])("%s is %s and can be parsed", async (given, name) => {
  expect(languageName(given)).toBe(name);
  const support = await loadLanguage(given);
  expect(support?.language.parser.parse("a = 1\n").length).toBe(6);
});

test.each(["", "text", "brainfuck", "constructor", "__proto__", "toString"])("%j is not known", async (name) => {
  expect(languageName(name)).toBeNull();
  expect(await loadLanguage(name)).toBeNull();
});

test("a language is loaded once for all its names", async () => {
  expect(loadLanguage("py")).toBe(loadLanguage("python"));
});
