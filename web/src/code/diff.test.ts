import { expect, it } from "vitest";
import { seededRandom } from "../testing/recordSlices";
import { diffLines } from "./diff";

function shown(before: string, after: string): string {
  const signs = { same: " ", added: "+", removed: "-" };
  return diffLines(before, after)
    .map((line) => `${signs[line.mark]}${line.number ?? ""}${line.text}`)
    .join("|");
}

it("added, removed and kept lines are marked", () => {
  expect(shown("a\nb\nc", "a\nx\nc")).toBe(" 1a|-b|+2x| 3c");
  expect(shown("a\nb", "a\nb")).toBe(" 1a| 2b");
  expect(shown("a", "a\nb")).toBe(" 1a|+2b");
  expect(shown("a\nb", "b")).toBe("-a| 1b");
  expect(shown("a\nb\nc\nd", "b\nd\ne")).toBe("-a| 1b|-c| 2d|+3e");
});

it("a diff contains both versions", () => {
  const random = seededRandom(3);
  const text = () =>
    Array.from({ length: Math.floor(random() * 12) }, () => "abcd"[Math.floor(random() * 4)]).join("\n");
  for (let round = 0; round < 300; round++) {
    const [before, after] = [text(), text()];
    const lines = diffLines(before, after);
    const side = (left: "added" | "removed") =>
      lines
        .filter((line) => line.mark !== left)
        .map((line) => line.text)
        .join("\n");
    expect(side("added")).toBe(before);
    expect(side("removed")).toBe(after);
  }
});

it("a diff of unrelated long versions is fast", () => {
  const many = (letter: string) => Array.from({ length: 5_000 }, (_, index) => `${letter}${index}`).join("\n");
  const lines = diffLines(many("a"), many("b"));
  expect(lines.length).toBe(10_000);
  expect(lines[0]?.mark).toBe("removed");
});
