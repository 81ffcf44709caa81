import { expect, it } from "vitest";
import type { AgentInfo } from "../client/api";
import type { JsonObject } from "../wire/events";
import { collect, fieldsOf, fieldsOfAgent, inputText, NO_FIELDS } from "./schemaFields";

const properties: JsonObject = {
  topic: { title: "Topic", type: "string" },
  words: { title: "Words", type: "integer", minimum: 1, maximum: 500, default: 200 },
  share: { title: "Share", anyOf: [{ type: "number" }, { type: "null" }], default: null },
  is_long: { title: "Is long", type: "boolean", default: false },
  style: { $ref: "#/$defs/Style", title: "Style" },
  tags: { title: "Tags", type: "array", items: { type: "string" } },
  person: { $ref: "#/$defs/Person", title: "Person", description: "Who asks" },
  anything: { title: "Anything" },
  either: { anyOf: [{ type: "string" }, { type: "integer" }] },
};
const schema: JsonObject = {
  type: "object",
  properties,
  required: ["person", "topic"],
  $defs: { Style: { enum: ["short", "long"] }, Person: { type: "object", title: "Person class" } },
};
const fields = fieldsOf(schema);

const agent = (part: Partial<AgentInfo>): AgentInfo => ({
  name: "a",
  title: "a",
  description: "",
  framework: "langgraph",
  default: true,
  ...part,
});

it("required fields come first, and each type has its kind", () => {
  expect(fields.map(({ name, kind, isRequired }) => [name, kind, isRequired])).toEqual([
    ["topic", "text", true],
    ["person", "json", true],
    ["words", "integer", false],
    ["share", "number", false],
    ["is_long", "boolean", false],
    ["style", "choice", false],
    ["tags", "json", false],
    ["anything", "json", false],
    ["either", "json", false],
  ]);
  expect(fields.find((field) => field.name === "style")).toMatchObject({ choices: ["short", "long"], title: "Style" });
  expect(fields.find((field) => field.name === "person")).toMatchObject({ title: "Person", description: "Who asks" });
  expect(fields.find((field) => field.name === "share")?.defaultValue).toBeUndefined();
});

it("what is typed becomes values, and empty fields are left out", () => {
  const draft = {
    topic: "bees",
    person: '{"name": "Ada"}',
    words: " 12 ",
    is_long: "true",
    style: "1",
    tags: '["a"]',
    share: "",
    either: "5",
  };
  expect(collect(fields, draft, true)).toEqual({
    values: {
      topic: "bees",
      person: { name: "Ada" },
      words: 12,
      is_long: true,
      style: "long",
      tags: ["a"],
      either: 5,
    },
    errors: {},
  });
});

it("mistakes are named for each field", () => {
  const draft = { person: "[]", words: "1.5", share: "x", tags: "{", either: "a" };
  expect(collect(fields, draft, true).errors).toEqual({
    topic: "This is needed.",
    person: 'An object, as {"a": 1}.',
    words: "A whole number is needed.",
    share: "This is not a number.",
    tags: 'This is not valid JSON. A list, as ["a", "b"].',
    either: "This is not valid JSON. A text in quotes, a number, a list or an object.",
  });
  expect(collect(fields, { words: "501" }, false).errors).toEqual({ words: "At most 500." });
  expect(collect(fields, { words: "0" }, false).errors).toEqual({ words: "At least 1." });
});

it("an agent without a schema has no fields", () => {
  expect(fieldsOfAgent(undefined)).toEqual(NO_FIELDS);
  expect(fieldsOfAgent(agent({}))).toEqual(NO_FIELDS);
});

it("the key of the question is not in the form", () => {
  const found = fieldsOfAgent(agent({ input_schema: schema, question_key: "topic" }));
  expect(found.takesQuestion).toBe(true);
  expect(found.input.map((field) => field.name)).not.toContain("topic");
  expect(fieldsOfAgent(agent({ input_schema: schema, question_key: "" })).takesQuestion).toBe(false);
});

it("an input with any keys is one field", () => {
  const found = fieldsOfAgent(agent({ input_schema: { type: "object" }, question_key: "messages" }));
  expect(found).toMatchObject({ isOpenInput: true, takesQuestion: true });
  expect(found.input.map(({ name, jsonType }) => [name, jsonType])).toEqual([["input", "object"]]);
});

it("only context that requests may set is in the form", () => {
  const context: JsonObject = { type: "object", properties: { tone: { type: "string" }, key: { type: "string" } } };
  const names = (allowed: AgentInfo["context_from_request"]) =>
    fieldsOfAgent(agent({ context_schema: context, context_from_request: allowed ?? false })).context.map(
      (field) => field.name,
    );
  expect([names(false), names(true), names(["tone"])]).toEqual([[], ["tone", "key"], ["tone"]]);
});

it("values are described by a line for each key", () => {
  expect(inputText({ topic: "bees", words: 3, tags: ["a"], none: null })).toBe(
    'topic: bees\nwords: 3\ntags: ["a"]\nnone: null',
  );
});
