import { expect, test } from "vitest";
import { fileName } from "./download";

test("a file name contains no invalid characters", () => {
  expect(fileName('../a/b: "c"?\n<d>', "md")).toBe("a b c d.md");
  expect(fileName("Größe der Dinge", "jsonl")).toBe("Größe der Dinge.jsonl");
  expect(fileName("  ...  ", "md")).toBe("conversation.md");
  expect(fileName("é".repeat(300), "md")).toBe(`${"é".repeat(60)}.md`);
});

test("a file name splits no surrogate pair", () => {
  expect(fileName("🐝".repeat(100), "md")).toBe(`${"🐝".repeat(60)}.md`);
});
