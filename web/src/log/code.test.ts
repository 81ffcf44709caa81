import { expect, it } from "vitest";
import { codeOf, partialCode } from "./code";

const tool = { name: "python", args: null, argsText: "", isPython: true };

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

it("code of other tools is read from the argument `code`", () => {
  const other = { ...tool, isPython: false };
  expect(codeOf({ ...other, name: "run_sql", args: { code: "select 1" } })).toMatchObject({ language: "sql" });
  expect(codeOf({ ...other, name: "run", args: { code: "1", language: "Rust" } })).toMatchObject({
    language: "rust",
  });
  expect(codeOf({ ...other, name: "ls", args: { path: "/" } })).toBeNull();
  expect(codeOf({ ...other, name: "copy", args: { source: "a.txt" } })).toBeNull();
});

it("any argument of a Python tool is code", () => {
  expect(codeOf({ ...tool, args: { x: 1 } })?.text).toBe('{"x":1}');
  expect(codeOf({ ...tool, args: "1 +" })?.text).toBe("1 +");
  expect(codeOf({ ...tool, argsText: '{"x": 1' })).toBeNull();
});
