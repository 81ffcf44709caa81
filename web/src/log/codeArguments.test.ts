import { expect, it } from "vitest";
import { codeOf, partialCode } from "./codeArguments";

const tool = { args: null, argsText: "", language: "python", codeKey: "" };

it("code is read from arguments at every length", () => {
  const code = 'print("é\\n")\n# \u{1f41d} done\t/\\';
  const whole = JSON.stringify({ note: 'not "code": here', code }).replace("🐝", "\\ud83d\\udc1d");
  const begin = whole.indexOf('"code":"') + '"code":"'.length;
  for (let until = 0; until <= whole.length; until++) {
    const text = partialCode(whole.slice(0, until));
    if (until < begin) expect(text).toBeNull();
    else expect(code.startsWith((text ?? "nothing").replace(/[\ud800-\udbff]$/, ""))).toBe(true);
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

it("code of a tool without a language is read from the argument `code` while it streams", () => {
  const other = { ...tool, language: "" };
  expect(codeOf({ ...other, argsText: '{"code": "select' })).toMatchObject({ text: "select", language: "text" });
  expect(codeOf({ ...other, argsText: '{"source": "a.txt' })).toBeNull();
});

it("all arguments are code if the server names none", () => {
  expect(codeOf({ ...tool, args: { x: 1 } })?.text).toBe('{"x":1}');
  expect(codeOf({ ...tool, args: "1 +" })?.text).toBe("1 +");
  expect(codeOf({ ...tool, argsText: '{"x": 1' })).toBeNull();
});
