import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { Markdown } from "./Markdown";
import * as tree from "./markdownTree";

vi.mock("./markdownTree", async (original) => {
  const real = await original<typeof import("./markdownTree")>();
  return { ...real, parseMarkdown: vi.fn(real.parseMarkdown) };
});
vi.mock("./HighlightedCode", () => ({ HighlightedCode: ({ code }: { code: string }) => <code>{code}</code> }));

afterEach(cleanup);

const shown = (text: string) => render(<Markdown text={text} />).container;

const SECTION = `## Part N

Some **bold** and _light_ words with \`code\`, a [link](https://example.org/N) and the note[^N].

- one N
- two
  - inner

| a | b |
|---|--:|
| N | 2 |

\`\`\`python
def f(x):

    return x + N
\`\`\`

> quoted N

[^N]: The note of part N.

`;

const ANSWER = Array.from({ length: 10 }, (_, index) => SECTION.replaceAll("N", String(index + 1))).join("");

function tokensOf(text: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => text.slice(0, Math.ceil(((index + 1) * text.length) / count)));
}

test("with 3,000 tokens, finished blocks are not parsed or rendered again, and the result equals the whole", () => {
  const parse = vi.mocked(tree.parseMarkdown);
  const prefixes = tokensOf(ANSWER, 3000);
  parse.mockClear();
  const { container, rerender } = render(<Markdown text="" streaming />);
  let first: Element | null = null;
  for (const prefix of prefixes) {
    rerender(<Markdown text={prefix} streaming />);
    first ??= prefix.length > 400 ? container.querySelector("h3") : null;
  }
  rerender(<Markdown text={ANSWER} streaming={false} />);
  // At most two for each token: the growing block, and a block that uses a new definition.
  expect(parse.mock.calls.length).toBeLessThan(2 * prefixes.length);
  const read = parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
  expect(read).toBeLessThan(prefixes.length * 200);
  const headings = parse.mock.calls.filter(([text]) => text === "## Part 1\n\n");
  expect(headings.length).toBeLessThanOrEqual(1);
  expect(first).not.toBeNull();
  expect(container.querySelector("h3")).toBe(first);
  const streamed = container.innerHTML;
  cleanup();
  expect(streamed).toBe(shown(ANSWER).innerHTML);
  expect(streamed).toContain("Part 10");
}, 180_000);

test("a token at the end of 200 kB parses only the last block", () => {
  const long = `${"word ".repeat(400)}\n\n`.repeat(100);
  const { rerender } = render(<Markdown text={long} streaming />);
  const parse = vi.mocked(tree.parseMarkdown);
  parse.mockClear();
  for (let count = 1; count <= 50; count += 1)
    rerender(<Markdown text={`${long}end ${"x".repeat(count)}`} streaming />);
  // The previous block is parsed again when it is finished.
  expect(parse.mock.calls.length).toBeLessThanOrEqual(51);
  expect(parse.mock.calls.filter(([text]) => text.length > 100).length).toBeLessThanOrEqual(1);
}, 60_000);

test("open emphasis at the end is closed while the text streams", () => {
  const { container, rerender } = render(<Markdown text="so **bo" streaming />);
  expect(container.querySelector("strong")?.textContent).toBe("bo");
  rerender(<Markdown text="so **bo" streaming={false} />);
  expect(container.querySelector("strong")).toBeNull();
  rerender(<Markdown text="see [the docs](https://exam" streaming />);
  expect(container.textContent).toBe("see the docs");
  expect(container.querySelector("a")).toBeNull();
});

test("GitHub-flavoured elements are rendered", () => {
  const page = shown(
    "# T\n\n1. a\n2. b\n\n- [x] done\n- [ ] open\n\n~~gone~~ https://example.org and me@example.org\n\n|a|\n|:-:|\n|1|\n\n---\n\n> q",
  );
  expect(page.querySelector("h2.text-h1")?.textContent).toBe("T");
  expect(page.querySelectorAll("ol > li")).toHaveLength(2);
  expect([...page.querySelectorAll("input")].map((box) => [box.checked, box.disabled])).toEqual([
    [true, true],
    [false, true],
  ]);
  expect(page.querySelector("del")?.textContent).toBe("gone");
  expect([...page.querySelectorAll("a")].map((link) => link.href)).toEqual([
    "https://example.org/",
    "mailto:me@example.org",
  ]);
  expect(page.querySelector("td")?.style.textAlign).toBe("center");
  expect(page.querySelector("hr")).not.toBeNull();
  expect(page.querySelector("blockquote")?.textContent?.trim()).toBe("q");
});

test("links open a new tab without a referrer", () => {
  const link = shown("[a](https://example.org)").querySelector("a");
  expect(link?.target).toBe("_blank");
  expect(link?.rel).toBe("noopener noreferrer nofollow");
});

test("definitions and footnotes are found anywhere in the text", () => {
  const page = shown(
    "See [the Docs] and[^x] that[^y].\n\n[the docs]: https://example.org/d\n\n[^x]: First.\n[^y]: Second.\n\n    More.",
  );
  expect(page.querySelector("a")?.href).toBe("https://example.org/d");
  expect([...page.querySelectorAll("sup a")].map((mark) => mark.textContent)).toEqual(["1", "2"]);
  const notes = [...page.querySelectorAll(".text-notes > li")];
  expect(notes.map((note) => note.textContent?.replace(/\s+/g, " ").trim())).toEqual(["First.", "Second. More."]);
  const mark = page.querySelectorAll<HTMLElement>("sup a")[1];
  const scroll = vi.fn();
  if (notes[1]) notes[1].scrollIntoView = scroll;
  const before = window.location.href;
  if (mark) fireEvent.click(mark);
  expect(scroll).toHaveBeenCalled();
  expect(document.activeElement).toBe(notes[1]);
  expect(window.location.href).toBe(before);
});

test("a link to a heading focuses it, and the address stays", () => {
  const page = shown("[go](#my-part)\n\n## My part!");
  const heading = page.querySelector<HTMLElement>("h3");
  if (heading) heading.scrollIntoView = vi.fn();
  fireEvent.click(screen.getByText("go"));
  expect(document.activeElement).toBe(heading);
});

test("code keeps its text, at the top level and in a list", () => {
  const page = shown("```py\na < b & c\n```\n\n- x\n\n  ```\n  y\n  ```");
  expect([...page.querySelectorAll("pre")].map((code) => code.textContent)).toEqual(["a < b & c", "y"]);
  expect([...page.querySelectorAll("figcaption")].map((line) => line.textContent)).toEqual(["py", "text"]);
});

test("formulas are shown as source until they are rendered, and prices stay", async () => {
  const page = shown("From $5 to $6: $x_1^2$ and\n\n$$\n\\frac{a}{b}\n$$\n\n`$y^2$` \\(z_1\\)");
  expect(page.textContent).toContain("$x_1^2$");
  await waitFor(() => expect(page.querySelectorAll(".katex")).toHaveLength(3), { timeout: 10_000 });
  expect(page.querySelectorAll(".katex-display")).toHaveLength(1);
  expect(page.textContent).toContain("From $5 to $6");
  expect(page.querySelector("p > code")?.textContent).toBe("$y^2$");
}, 20_000);

test("an invalid formula stays as source", async () => {
  const page = shown("$\\frac{a$ and $b_1$");
  await waitFor(() => expect(page.querySelectorAll(".katex")).toHaveLength(1), { timeout: 10_000 });
  expect(page.querySelector(".text-formula > code")?.textContent).toBe("$\\frac{a$");
}, 20_000);

test("a block that is too long is plain text", () => {
  const page = shown("*a* ".repeat(30_000));
  expect(page.querySelector("em")).toBeNull();
  expect(page.querySelector("pre.text-plain")).not.toBeNull();
});

test("each element has the direction of its own text", () => {
  const page = shown("# שלום\n\nhello\n\nمرحبا\n\n- אחת\n- two\n\n1. one\n\n> مرحبا\n\n- [x] שלום\n\n  עוד\n");
  const auto = [...page.querySelectorAll('[dir="auto"]')].map((part) => part.tagName);
  expect(auto).toEqual(expect.arrayContaining(["H2", "P"]));
  expect(
    [...page.querySelectorAll("ul, ol, blockquote")].map((part) => [part.tagName, part.getAttribute("dir")]),
  ).toEqual([
    ["UL", "rtl"],
    ["OL", null],
    ["BLOCKQUOTE", "rtl"],
    ["UL", "rtl"],
  ]);
  expect(page.querySelector(".contains-task-list")).not.toBeNull();
  expect([...page.querySelectorAll("p")].every((part) => part.dir === "auto")).toBe(true);
});

test("an ordered list keeps its start number", () => {
  expect(shown("3. three").querySelector("ol")?.start).toBe(3);
});
