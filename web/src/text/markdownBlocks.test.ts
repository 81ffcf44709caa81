import { describe, expect, test } from "vitest";
import { IncrementalBlocks, parseBlocks, parseFence } from "./markdownBlocks";

const texts = (text: string) => parseBlocks(text).map((block) => block.text.trim());

describe("parseBlocks", () => {
  test.each([
    ["paragraphs", "a\n\nb\n\n\nc", ["a", "b", "c"]],
    ["a loose list is one", "- a\n\n- b\n\n  more\n\nend", ["- a\n\n- b\n\n  more", "end"]],
    ["a fence ends a paragraph", "a\n```py\nx\n\ny\n```\nb", ["a", "```py\nx\n\ny\n```", "b"]],
    ["a fence that is never closed", "a\n\n~~~\nx\n\n```\n", ["a", "~~~\nx\n\n```"]],
    ["inline code of three backticks is not a fence", "```x``` y\n\nb", ["```x``` y", "b"]],
    ["code of an item stays in it", "- a\n  ```\n  x\n\n  y\n  ```\n\nb", ["- a\n  ```\n  x\n\n  y\n  ```", "b"]],
    ["indented code stays together", "    a\n\n    b\n\nc", ["a\n\n    b", "c"]],
    ["a fence may be set in a little", "a\n  ```\nx\n\ny\n  ```\nb", ["a", "```\nx\n\ny\n  ```", "b"]],
    ["a table", "|a|\n|-|\n|1|\n\nx", ["|a|\n|-|\n|1|", "x"]],
    [
      "footnotes",
      "a[^1]\n\n[^1]: one\n[^2]: two\n\n    more\n\nb",
      ["a[^1]", "[^1]: one", "[^2]: two\n\n    more", "b"],
    ],
    ["lines of Windows", "a\r\n\r\nb", ["a", "b"]],
    ["nothing", "\n\n", []],
  ])("%s", (_, text, expected) => {
    expect(texts(text)).toEqual(expected);
  });

  test("only blank lines are dropped", () => {
    const text = "a\n\n\n- x\n\n```\nq\n```\nz\n";
    expect(
      parseBlocks(text)
        .map((block) => block.text)
        .join(""),
    ).toBe(text);
  });
});

test("a growing text has the same blocks at every length, and finished ones stay the same objects", () => {
  const text =
    "# T\n\ntext\n--\n\n- a\n\n- b\n\n  c\n\n---\n```js\n``\n```\n````\n\nx\n\n[^a]: n\n    m\n\n    o\n\nq".repeat(3);
  const growing = new IncrementalBlocks();
  let before: readonly unknown[] = [];
  for (let length = 0; length <= text.length; length += 1) {
    const blocks = growing.of(text.slice(0, length));
    expect(blocks).toEqual(parseBlocks(text.slice(0, length)));
    const firm = Math.max(0, before.length - 2);
    for (let index = 0; index < firm; index += 1) expect(blocks[index]).toBe(before[index]);
    before = blocks;
  }
});

test("another text starts again", () => {
  const growing = new IncrementalBlocks();
  growing.of("a\n\nb\n\nc");
  expect(growing.of("x\n\ny")).toEqual(parseBlocks("x\n\ny"));
});

test.each([
  ["```py title\na\n\nb\n```\n\n", { language: "py", code: "a\n\nb" }],
  ["~~~\na\n```", { language: "", code: "a\n```" }],
  ["```js\nx\n", { language: "js", code: "x" }],
  ["```", { language: "", code: "" }],
  ["  ```\n   a\nb\n  ```", { language: "", code: " a\nb" }],
  ["```\n```", { language: "", code: "" }],
])("parseFence parses %j", (text, fence) => {
  expect(parseFence(text)).toEqual(fence);
});
