import { describe, expect, it } from "vitest";
import cases from "../../../tests/code_arguments.json";
import { codeOf, firstText } from "./codeArguments";
import table from "./v2Components.json";
import type { Args } from "./viewModel";

const tool = { args: null, argsText: "", language: "python", codeKey: "" };

const partialCode = (json: string) => firstText(json, table.code_keys);

describe.each(cases)("$name", ({ tool: name, pieces, streamed, args, code_key: codeKey, code }) => {
  const isPython = name === "python";
  const call = { ...tool, language: isPython ? "python" : "" };

  it("the code streams", () => {
    const found = codeOf({ ...call, argsText: pieces.join("") });
    expect(found).toEqual(streamed === null ? null : { text: streamed, language: "python", isComplete: false });
  });

  it("the code that streams is extended by each character", () => {
    const json = pieces.join("");
    let before = "";
    for (let until = 0; until <= json.length; until++) {
      const text = codeOf({ ...call, argsText: json.slice(0, until) })?.text ?? "";
      expect(text.startsWith(before)).toBe(true);
      before = text;
    }
  });

  it("the server names the complete code", () => {
    const language = code === null ? "" : isPython ? "python" : "sql";
    expect(codeOf({ args: args as Args, argsText: "", codeKey, language })?.text ?? null).toBe(code);
  });
});

it("code is read from arguments at every length", () => {
  const code = 'print("é\\n")\n# \u{1f41d} done\t/\\';
  const whole = JSON.stringify({ note: 'not "code": here', code }).replace("🐝", "\\ud83d\\udc1d");
  const begin = whole.indexOf('"code":"') + '"code":"'.length;
  for (let until = 0; until <= whole.length; until++) {
    const text = partialCode(whole.slice(0, until));
    if (until <= begin) expect(text).toBeNull();
    else expect(code.startsWith(text ?? "nothing")).toBe(true);
  }
  expect(partialCode(whole)).toBe(code);
});

it("long code is read", () => {
  expect(partialCode(`{"code": "${"x\\n".repeat(1_000_000)}`)?.length).toBe(2_000_000);
});

it("code is read from the argument that the server names", () => {
  expect(codeOf({ ...tool, args: { code: "select 1", n: 2 }, language: "sql", codeKey: "code" })).toEqual({
    text: "select 1",
    language: "sql",
    isComplete: true,
  });
  expect(codeOf({ ...tool, args: { code: "select 1" }, language: "" })).toBeNull();
});

it("code of truncated arguments is read from the argument that the server names", () => {
  const args = '{"source": "a", "code": "print(1)\\nprint(';
  expect(codeOf({ ...tool, args, codeKey: "code" })?.text).toBe("print(1)\nprint(");
});

it("code that was cut off is read from the incomplete arguments", () => {
  expect(codeOf({ ...tool, args: '{"code": "print(\\"' })).toEqual({
    text: 'print("',
    language: "python",
    isComplete: true,
  });
});

it("all arguments are code if the server names none", () => {
  expect(codeOf({ ...tool, args: { x: 1 } })?.text).toBe('{"x":1}');
  expect(codeOf({ ...tool, args: "1 +" })?.text).toBe("1 +");
  expect(codeOf({ ...tool, argsText: '{"x": 1' })).toBeNull();
});
