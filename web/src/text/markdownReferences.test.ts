import { expect, test } from "vitest";
import { IncrementalBlocks } from "./markdownBlocks";
import { ReferenceCollector, withCitations, withReferences } from "./markdownReferences";

test("lines stay the same while a footnote grows, and change with a new definition", () => {
  const growing = new IncrementalBlocks();
  const definitions = new ReferenceCollector();
  const of = (text: string) => definitions.of(growing.of(text));
  const first = of("a[^1]\n\n[^1]: on");
  const second = of("a[^1]\n\n[^1]: one");
  expect(second.lines).toBe(first.lines);
  expect(second.notes).toEqual([{ number: 1, text: "one" }]);
  expect(of("a[^1]\n\n[^1]: one\n\n[b]: https://example.org").lines).not.toBe(first.lines);
});

test("only blocks that use a definition get it", () => {
  const blocks = new IncrementalBlocks().of(
    "a [B  c]\n\nb [x]\n\n[b c]: https://example.org\n[b c]: https://second.example",
  );
  const { lines } = new ReferenceCollector().of(blocks);
  expect(blocks.map((block) => withReferences(block, lines).includes("\n\n[b c]: https://example.org"))).toEqual([
    true,
    false,
    true,
  ]);
});

test.each([
  ["a [1].", "a [&#91;1&#93;](<https://a.example/>)."],
  ["so [1][2][1]", "so [&#91;1&#93;](<https://a.example/>)[2][&#91;1&#93;](<https://a.example/>)"],
  ["[words][1]", "[words][1]"],
  ["[3] [0] [x] ![1](y) [1](z) \\[1] `[1]`", "[3] [0] [x] ![1](y) [1](z) \\[1] `[1]`"],
])("citations of %j", (text, expected) => {
  expect(withCitations(text, ["https://a.example/", null])).toBe(expected);
});
