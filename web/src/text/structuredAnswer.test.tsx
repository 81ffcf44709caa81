import { readFileSync } from "node:fs";
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { JsonValue } from "../wire/events";
import { AnswerBody } from "./AnswerBody";
import { pythonLiteral } from "./pythonLiteral";
import { answerOf, type Given, sourceOf } from "./structuredAnswer";

afterEach(cleanup);

const given = (content: JsonValue, title = "", sources: string[] = []): Given => ({ content, title, sources });

/** Final answers of a transcript of the server's tests. */
function golden(name: string): Given[] {
  const lines = readFileSync(`../tests/dialects/golden/${name}.jsonl`, "utf8").trim().split("\n");
  const events = lines.map((line) => (JSON.parse(line) as { event: Partial<Given> & { kind: string } }).event);
  return events
    .filter((event) => event.kind === "final_answer")
    .map(({ content = null, title = "", sources = [] }) => ({ content, title, sources }));
}

test("a golden answer that is a value stays a value", () => {
  expect(golden("answer_never_streamed").map(answerOf)).toEqual([
    { title: "The answer", content: { answer: 42 }, sources: ["https://example.org/"] },
  ]);
});

test.each(["text", "one_tool", "sub_agents", "plan", "code_output"])(
  "golden answers of %s keep their content and title",
  (name) => {
    for (const answer of golden(name)) {
      const shown = answerOf(answer);
      if (typeof answer.content === "string") expect(shown.content).toBe(answer.content);
      expect(shown.title).toBe(answer.title);
    }
  },
);

test.each([
  [given("Final answer: yes"), { title: "", content: "yes", sources: [] }],
  [given("  Final answer:\n\n yes"), { title: "", content: "yes", sources: [] }],
  [given("plain  "), { title: "", content: "plain  ", sources: [] }],
  [given({ title: "T", content: "c", sources: ["s"] }), { title: "T", content: "c", sources: ["s"] }],
  [given('{"title": "T", "content": "c"}'), { title: "T", content: "c", sources: [] }],
  [given('Final answer: {"content": {"a": 1}}'), { title: "", content: { a: 1 }, sources: [] }],
  [given({ title: "T", content: "c", sources: ["s"] }, "mine", ["m"]), { title: "mine", content: "c", sources: ["m"] }],
  [
    given("{'title': 'T', 'content': \"it's\", 'sources': ('a', 'b')}"),
    { title: "T", content: "it's", sources: ["a", "b"] },
  ],
  [given({ content: "c", sources: [{ url: "u" }] }), { title: "", content: "c", sources: ['{"url":"u"}'] }],
  [given('{"other": 1}'), { title: "", content: { other: 1 }, sources: [] }],
  [given("Final answer: {'other': None}"), { title: "", content: { other: null }, sources: [] }],
  [given('{"id": 12345678901234567890}'), { title: "", content: '{"id": 12345678901234567890}', sources: [] }],
  [given("{'content': broken}"), { title: "", content: "{'content': broken}", sources: [] }],
  [given([1]), { title: "", content: [1], sources: [] }],
  [given(null), { title: "", content: null, sources: [] }],
  [given({ content: "c", sources: "no list" }), { title: "", content: "c", sources: [] }],
])("%j", (answer, expected) => {
  expect(answerOf(answer)).toEqual(expected);
});

test.each([
  ["{'a': [1, -2.5, 1_000, 1e3], 'b': (True, False, None,)}", { a: [1, -2.5, 1000, 1000], b: [true, false, null] }],
  ["'a\\n\\'b\\u00e9\\x41' \"c\"", "a\n'béAc"],
  ["'''a\nb'''", "a\nb"],
  ["{}", {}],
])("the literal %s", (text, value) => {
  expect(pythonLiteral(text)).toEqual(value);
});

test.each(["{'a'}", "{'a': 1", "'a", "open('x')", "[1 2]", "", "[".repeat(500)])("%.20j is not a literal", (text) => {
  expect(() => pythonLiteral(text)).toThrow(SyntaxError);
});

test.each([
  ["https://example.org/a", { title: "", address: "https://example.org/a" }],
  ["Docs — https://example.org/a.", { title: "Docs", address: "https://example.org/a" }],
  ["Docs (https://example.org/a)", { title: "Docs", address: "https://example.org/a" }],
  ["[Docs](https://example.org/a)", { title: "Docs", address: "https://example.org/a" }],
  ['{"title": "Docs", "url": "https://example.org/a"}', { title: "Docs", address: "https://example.org/a" }],
  ["https://en.example.org/wiki/A_(b)", { title: "", address: "https://en.example.org/wiki/A_(b)" }],
  ["A book of 1999", { title: "A book of 1999", address: "" }],
  ["javascript:alert(1)", { title: "javascript:alert(1)", address: "" }],
])("the source %s", (text, source) => {
  expect(sourceOf(text)).toEqual(source);
});

test("an answer is a document with numbered sources that its citations link to", () => {
  const page = render(
    <AnswerBody
      title="Sales"
      content={"They rose [1], see [2] and [3].\n\n`[1]` [1](https://other.example)"}
      sources={["Report — https://example.org/r", "A book"]}
    />,
  ).container;
  expect(page.querySelector("h2")?.textContent).toBe("Sales");
  expect([...page.querySelectorAll(".text a")].map((link) => [link.textContent, link.getAttribute("href")])).toEqual([
    ["[1]", "https://example.org/r"],
    ["1", "https://other.example/"],
  ]);
  expect([...page.querySelectorAll("li")].map((line) => line.textContent)).toEqual(["Report — example.org", "A book"]);
});

test("an answer that is not a string is shown as JSON", () => {
  const page = render(<AnswerBody title="" content={{ a: 1 }} sources={[]} />).container;
  expect(page.querySelector("pre")?.textContent).toBe('{\n  "a": 1\n}');
});
