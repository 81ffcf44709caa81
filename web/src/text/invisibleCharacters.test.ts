import { expect, test } from "vitest";
import { escapeBidi, escapeInvisible } from "./invisibleCharacters";

test.each([
  ["plain\ttext\n", "plain\ttext\n"],
  ["\u001b[31mred\u001b[0m", "red"],
  ["\u001b]0;title\u0007x", "x"],
  ["\u001b]8;;https://evil.example\u001b\\link\u001b]8;;\u001b\\", "link"],
  ["\u001b[2J\u001b[1;1Hx\u001b(B", "x"],
  ["\u009b31mx", "x"],
  ["\u001bP1;2|data\u001b\\x", "x"],
  ["a\r\nb\rc", "a\nb\nc"],
  ["a\u0000b\u0007\u007f", "a␀b␇␡"],
  ["\u0085", "⟨U+0085⟩"],
  ["user\u202egpj.exe", "user⟨U+202E⟩gpj.exe"],
  ["\u2066x\u2069", "⟨U+2066⟩x⟨U+2069⟩"],
  ["שלום – 你好 🎉", "שלום – 你好 🎉"],
])("%j is shown as %j", (text, shown) => {
  expect(escapeInvisible(text)).toBe(shown);
});

test("prose keeps direction marks and shows overrides", () => {
  expect(escapeBidi("a\u200fb\u202ec")).toBe("a\u200fb⟨U+202E⟩c");
});

test.each([
  ["a\u001b", "a␛"],
  ["a\u001b\nb", "a␛\nb"],
  ["a\u001b[31", "a"],
  ["a\u001b]0;title\nb", "a\nb"],
])("an incomplete sequence %j is shown as %j", (text, shown) => {
  expect(escapeInvisible(text)).toBe(shown);
});
