import { describe, expect, test } from "vitest";
import { encodeFormulas, parseFormula } from "./formulas";

const hidden = (text: string) => encodeFormulas(text).replace(/\ue000[^\ue001]*\ue001/g, "F");

describe("a formula", () => {
  test.each([
    ["so $x$ is", "so F is"],
    ["$E = mc^2$.", "F."],
    ["($n+1$)", "(F)"],
    ["a $\\alpha_1$, b $2x$", "a F, b F"],
    ["$$\nx\n$$", "F"],
    ["$$a$$ and $$b$$", "F and F"],
    ["\\(x_1\\) and \\[ y \\]", "F and F"],
    ["| $a|b$ |", "| F |"],
  ])("%j", (text, expected) => expect(hidden(text)).toBe(expected));
});

describe("not a formula", () => {
  test.each([
    "$5 and $6",
    "from $5 to $6, or 7$ in all",
    "$5, or 5$",
    "US$5 and US$6",
    "$HOME and $PATH",
    "$HOME/$USER",
    "$NAME$",
    "a$ b$",
    "`$x$` and ``a ` $y$``",
    "\\$x$ and \\\\(no\\\\)",
    "$$ is much money",
    "$$a\n\nb$$",
    "$ x $",
    "$x",
    "$$",
  ])("%j", (text) => expect(encodeFormulas(text)).toBe(text));
});

test.each([
  ["$x$", { tex: "x", display: false }],
  ["\\( x \\)", { tex: "x", display: false }],
  ["$$\nx\n$$", { tex: "x", display: true }],
  ["\\[x\\]", { tex: "x", display: true }],
])("%j", (source, formula) => expect(parseFormula(source)).toEqual(formula));

test("many unclosed delimiters are fast", () => {
  const before = performance.now();
  for (const piece of ["$a ", "$$a ", "`a ", "\\(", "`$", "$", "``` `` "]) encodeFormulas(piece.repeat(10_000));
  expect(performance.now() - before).toBeLessThan(3000);
});
