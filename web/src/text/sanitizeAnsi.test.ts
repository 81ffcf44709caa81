import { describe, expect, it } from "vitest";
import { seededRandom } from "../testing/recordSlices";
import { AnsiSanitizer, sanitizeAnsi, stripAnsi } from "./sanitizeAnsi";

const E = "\u001b";

describe("allowed", () => {
  it.each([
    "plain é 🐝 漢字",
    "a\nb\r\nc\td\be",
    `${E}[m`,
    `${E}[0m`,
    `${E}[1;31mred${E}[0m`,
    `${E}[38;5;200mx`,
    `${E}[38;2;1;2;3;48;2;4;5;6mx`,
    `${E}[4:3mcurly`,
    `${E}[38:2::1:2:3mx`,
    `${E}[K`,
    `${E}[2K`,
  ])("%j", (text) => expect(sanitizeAnsi(text)).toBe(text));
});

describe("removed", () => {
  it.each<[string, string]>([
    [`a${E}]0;title\u0007b`, "ab"],
    [`a${E}]0;title${E}\\b`, "ab"],
    [`${E}]8;;https://evil.example/${E}\\link${E}]8;;${E}\\`, "link"],
    [`${E}]52;c;ZXZpbA==\u0007x`, "x"],
    [`${E}Pq#0;2;0;0;0~~${E}\\x`, "x"],
    [`${E}_Gf=24;AAAA${E}\\x`, "x"],
    [`${E}^private${E}\\${E}Xstart${E}\\x`, "x"],
    [`${E}[2J${E}[H${E}[10;10H${E}[5Ax`, "x"],
    [`${E}[?1049h${E}[?1000h${E}[?25lx`, "x"],
    [`${E}[6n${E}[c${E}[>c${E}[5n${E}[?6n${E}[18tx`, "x"],
    [`${E}[>4;2m${E}[?4m${E}[1 qx`, "x"],
    [`${E}c${E}7${E}8${E}=${E}>${E}Dx`, "x"],
    [`${E}(0lqk${E}(B${E}#8${E}%Gx`, "lqkx"],
    ["\u0007\u0000\u000e\u000f\u007fx", "x"],
    ["\u009b31mx\u0090\u009d\u0085", "31mx"],
    [`${E}[5;6;8mx`, "x"],
    [`${E}[1;5;31mx`, `${E}[1;31mx`],
    [`${E}[38;9;1mx`, "x"],
    [`${E}[38;2;999;0;0mx`, "x"],
    [`${E}[3${E}[31mx`, `${E}[31mx`],
    [`${E}]0;title${E}[31mred`, `${E}[31mred`],
    [`${E}${E}[31mx`, `${E}[31mx`],
    [`${E}[?Kx${E}[3Kx`, "xx"],
    [`a${E}\nb`, "a\nb"],
    ["user\u202Etxt.exe\u2066\u2069", "user�txt.exe��"],
  ])("%j", (text, shown) => expect(sanitizeAnsi(text)).toBe(shown));
});

describe("an unterminated sequence", () => {
  it("ends with its line", () => {
    expect(sanitizeAnsi(`a${E}]0;title\nnext line`)).toBe("a\nnext line");
    expect(sanitizeAnsi(`a${E}[31\nnext line`)).toBe("a\nnext line");
  });

  it.each(["]", "P", "_", "^", "X", "[", "("])("with ESC %s does not swallow the rest", (begin) => {
    const rest = "0".repeat(10_000);
    expect(sanitizeAnsi(E + begin + rest).length).toBeGreaterThan(5_000);
    const spaces = " ".repeat(10_000);
    expect(sanitizeAnsi(E + begin + spaces).length).toBeGreaterThan(5_000);
  });
});

const NASTY = [
  `a${E}]52;c;ZXZpbA==\u0007b${E}[1;5;31mc${E}[0md`,
  `${E}]8;;javascript:alert(1)${E}\\click${E}]8;;${E}\\\r\n`,
  `${E}[?1049h${E}[38;2;1;2;3mx${E}[K${E}Pq~${E}\\y${E}(0z\u009b5n🐝\u202Ex`,
  `${E}]0;never ended\n${E}[999999999999999999999999999999999999999999999999999999999999999999999mx`,
];

it.each(NASTY)("the result does not depend on where the stream is cut: %j", (text) => {
  const whole = sanitizeAnsi(text);
  for (let one = 0; one <= text.length; one++) {
    for (let two = one; two <= text.length; two++) {
      const stream = new AnsiSanitizer();
      const pieces = [text.slice(0, one), text.slice(one, two), text.slice(two)];
      expect(pieces.map((piece) => stream.feed(piece)).join("")).toBe(whole);
    }
  }
});

// requirement: page-escape-sequences
it("random input leaves only allowed sequences", () => {
  const random = seededRandom(11);
  const alphabet = [...`${E}${E}${E}[[];?:>0123858mKHJhlnq\\PX^_(#c ~abc\n\r\t\b\u0007\u0018\u009b\u009c\u009d\u202e`];
  for (let round = 0; round < 2_000; round++) {
    let text = "";
    for (let size = 0; size < 60; size++) text += alphabet[Math.floor(random() * alphabet.length)];
    const shown = sanitizeAnsi(text);
    expect(shown.replace(/\u001b\[(?:[0-9;:]*m|[012]?K)/g, "")).not.toMatch(
      /[^\P{Cc}\n\r\t\b]|[\u202a-\u202e\u2066-\u2069]/u,
    );
    expect(sanitizeAnsi(shown)).toBe(shown);
    const stream = new AnsiSanitizer();
    expect([...text].map((char) => stream.feed(char)).join("")).toBe(shown);
  }
});

it("stripAnsi removes styles too", () => {
  expect(stripAnsi(`${E}[1mname${E}[0m\u0007 ${E}[Kx`)).toBe("name x");
});
