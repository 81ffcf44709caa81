import { expect, test } from "vitest";
import { loadLanguage } from "./programmingLanguages";
import { highlightSpans, IncrementalParser } from "./syntaxHighlighting";

const CODES = {
  python: 'import os\n\nclass A:\n    """Doc\n    more"""\n    def f(self, x=1):\n        return f"{x}" # why\n'.repeat(
    12,
  ),
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is code in another language
  typescript: "const a: number = `x ${b}`; /* c\n d */ function f() { return a ?? /re/g }\n".repeat(12),
  bash: "for x in \"$A\"; do echo 'y' | grep -c z # n\ndone\n".repeat(12),
  json: `[${'{"a": [1, true, null, "b\\n"]},\n'.repeat(20)} 1]`,
};

test.each(Object.entries(CODES))("%s in pieces is highlighted like the whole", async (name, code) => {
  const parser = (await loadLanguage(name))?.language.parser;
  if (!parser) throw new Error("not loaded");
  const growing = new IncrementalParser();
  for (let length = 1; length < code.length; length += 5) {
    const part = code.slice(0, length);
    const pieces = highlightSpans(part, growing.parse(parser, part));
    expect(pieces.map((piece) => piece.text).join("")).toBe(part);
  }
  const pieces = highlightSpans(code, growing.parse(parser, code));
  expect(pieces).toEqual(highlightSpans(code, new IncrementalParser().parse(parser, code)));
  expect(new Set(pieces.map((piece) => piece.style)).size).toBeGreaterThan(2);
});
