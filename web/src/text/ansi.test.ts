import { expect, it } from "vitest";
import { ansiSpans, ansiTail } from "./ansi";

const E = "\u001b[";

it.each<[string, [string, string][]]>([
  ["plain", [["plain", ""]]],
  [
    `${E}31mred${E}0m plain`,
    [
      ["red", "ansi-red"],
      [" plain", ""],
    ],
  ],
  [
    `${E}1;4;32ma${E}22mb${E}24;39mc`,
    [
      ["a", "ansi-bold ansi-underline ansi-green"],
      ["b", "ansi-underline ansi-green"],
      ["c", ""],
    ],
  ],
  [
    `${E}44ma${E}49mb`,
    [
      ["a", "ansi-on-blue"],
      ["b", ""],
    ],
  ],
  [
    `${E}91ma${E}104mb`,
    [
      ["a", "ansi-red"],
      ["b", "ansi-red ansi-on-blue"],
    ],
  ],
  [
    `${E}38;5;9ma${E}38;5;21mb${E}38;5;240mc`,
    [
      ["a", "ansi-red"],
      ["b", "ansi-blue"],
      ["c", "ansi-black"],
    ],
  ],
  [`${E}38;2;250;200;10;1ma`, [["a", "ansi-bold ansi-yellow"]]],
  [`${E}38:2::10:200:10ma${E}4:0mb`, [["ab", "ansi-green"]]],
  [`${E}m${E}58;5;1mx`, [["x", ""]]],
  ["10%\r20%\r30%\nnext\r\nline", [["30%\nnext\nline", ""]]],
  ["abc\b\bd", [["ad", ""]]],
  ["\b\bx", [["x", ""]]],
  [`${E}2J\u001b]0;title\u0007x`, [["x", ""]]],
  ["", []],
])("%j", (text, expected) => {
  expect(ansiSpans(text).map((span) => [span.text, span.className])).toEqual(expected);
});

const end = (text: string, length: number) => {
  const { spans: kept, isTruncated } = ansiTail(text, length);
  return [kept.map((span) => span.text).join(""), isTruncated];
};

it("ansiTail returns the end of a text", () => {
  expect(end("one\ntwo", 10)).toEqual(["one\ntwo", false]);
  expect(end("one\ntwo", 5)).toEqual(["e\ntwo", true]);
  expect(end("a😀b", 2)).toEqual(["b", true]);
  expect(ansiTail(`one ${E}31mtwo${E}0m`, 3)).toEqual({
    spans: [{ text: "two", className: "ansi-red" }],
    isTruncated: true,
  });
});

it("ansiTail returns the last state of a progress bar and splits no sequence", () => {
  expect(end("10%\r50%\r100%\n", 5)).toEqual(["100%\n", false]);
  expect(end("10%\r50%\r", 5)).toEqual(["50%", false]);
  expect(end(`\n${`${E}31m.`.repeat(100)}\rdone`, 4)).toEqual(["done", true]);
});
