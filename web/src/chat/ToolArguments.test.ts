import { expect, it } from "vitest";
import type { Args } from "../log/viewModel";
import { splitArguments } from "./ToolArguments";

const call = (args: Args | null, language = "", codeKey = "") => ({ args, argsText: '{"path', language, codeKey });

it.each([
  [
    { path: "a.md", content: "# One\n\nTwo" },
    { path: "a.md" },
    [{ name: "content", text: "# One\n\nTwo", language: "" }],
  ],
  [{ path: "a.py", content: "x\ny" }, { path: "a.py" }, [{ name: "content", text: "x\ny", language: "python" }]],
  [{ a: "line\n", b: ["x\ny"] }, { a: "line\n", b: ["x\ny"] }, []],
  [{}, null, []],
  ["no\njson", "no\njson", []],
  [null, '{"path', []],
])("texts with line breaks are split from short values (%#)", (args, values, texts) => {
  expect(splitArguments(call(args))).toEqual({ code: null, values, texts });
});

it("code is not repeated among the values", () => {
  expect(splitArguments(call({ code: "a\nb", timeout: 3 }, "python", "code"))).toMatchObject({
    code: { text: "a\nb", language: "python" },
    values: { timeout: 3 },
    texts: [],
  });
  expect(splitArguments(call({ timeout: 3 }, "python"))).toEqual({ code: null, values: { timeout: 3 }, texts: [] });
});
