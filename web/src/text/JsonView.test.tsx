import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { CodeBlock } from "./CodeBlock";
import { HighlightedCode } from "./HighlightedCode";
import { JsonView, shownValue } from "./JsonView";

afterEach(cleanup);

test.each([
  [{ a: [1, null] }, '{\n  "a": [\n    1,\n    null\n  ]\n}', "json"],
  ['{"a":1}', '{\n  "a": 1\n}', "json"],
  [" [1] ", "[\n  1\n]", "json"],
  ["{not json}", "{not json}", ""],
  ['{"id":12345678901234567890}', '{"id":12345678901234567890}', ""],
  ["plain\ntext", "plain\ntext", ""],
  ["12", "12", ""],
  [12, "12", "json"],
  [null, "null", "json"],
] as const)("%j", (value, text, language) => {
  expect(shownValue(value as never)).toEqual({ text, language });
});

test("escape sequences and hidden characters are not rendered", () => {
  const { container } = render(<JsonView value={"\u001b[31mred\u001b[0m\u202e\u0000"} />);
  expect(container.textContent).toBe("red⟨U+202E⟩␀");
});

test("a long text is shown in parts", () => {
  const text = `${"x".repeat(19_999)}😀${"y".repeat(50_000)}`;
  const { container } = render(<JsonView value={text} />);
  expect(container.querySelector("pre")?.textContent).toBe(`${"x".repeat(19_999)}😀`);
  expect(container.textContent).toContain("50,000 more characters");
  for (let clicks = 0; clicks < 2; clicks += 1) fireEvent.click(screen.getByText("Show more"));
  expect(container.querySelector("pre")?.textContent).toBe(text);
  expect(screen.queryByText("Show more")).toBeNull();
});

test("code is highlighted when its language is loaded, without a change of its text", async () => {
  const code = 'def f(x):\n    return "a" + 1  # why\n';
  const { container, rerender } = render(<HighlightedCode code={code} language="py" />);
  expect(container.textContent).toBe(code);
  expect(container.querySelector("span")).toBeNull();
  await waitFor(() => expect(container.querySelector(".code-keyword")?.textContent).toBe("def"), { timeout: 10_000 });
  expect(container.textContent).toBe(code);
  expect(container.querySelector(".code-string")?.textContent).toBe('"a"');
  expect(container.querySelector(".code-comment")?.textContent).toBe("# why");
  rerender(<HighlightedCode code={`${code}\nclass A:\n    pass\n`} language="py" />);
  expect(container.textContent).toBe(`${code}\nclass A:\n    pass\n`);
  expect([...container.querySelectorAll(".code-keyword")].map((word) => word.textContent)).toContain("class");
});

test("code of an unknown language is plain text with a copy button", () => {
  const { container } = render(<CodeBlock code="select 'a'" language="text" />);
  expect(container.querySelector("figcaption")?.textContent).toBe("text");
  expect(container.querySelector("pre")?.innerHTML).toBe("<code class=\"text-highlighted\">select 'a'</code>");
});

test("very long code and unknown languages are not highlighted", async () => {
  const long = render(<HighlightedCode code={"x = 1\n".repeat(20_000)} language="python" />).container;
  const unknown = render(<HighlightedCode code="x = 1" language="klingon" />).container;
  const known = render(<HighlightedCode code="def x(): 1" language="python" />).container;
  await waitFor(() => expect(known.querySelector("span")).not.toBeNull(), { timeout: 10_000 });
  expect(long.querySelector("span")).toBeNull();
  expect(unknown.querySelector("span")).toBeNull();
});
