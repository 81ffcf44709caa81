import { describe, expect, it } from "vitest";
import type { JsonObject, JsonValue } from "../wire/events";
import { type FieldValue, formFields, initialValues, readForm } from "./answerSchema";

const one = (schema: JsonObject) => formFields(schema)[0];

describe("fields", () => {
  it.each<[JsonObject, string]>([
    [{}, "text"],
    [{ type: "string" }, "text"],
    [{ type: ["string", "null"] }, "text"],
    [{ type: "integer" }, "number"],
    [{ type: "boolean" }, "choice"],
    [{ enum: ["a", 1, null] }, "choice"],
    [{ oneOf: [{ const: "a" }, { const: "b", title: "B" }] }, "choice"],
    [{ type: "array", items: { enum: ["a"] } }, "choices"],
    [{ type: "array", items: { type: "string" } }, "list"],
    [{ type: "array", items: { type: "object" } }, "json"],
    [{ type: "object" }, "json"],
    [{ anyOf: [{ type: "string" }, { type: "object" }] }, "json"],
    [{ anyOf: [{ type: "integer" }, { type: "null" }] }, "number"],
    [{ $ref: "#/$defs/Size", $defs: { Size: { enum: [1, 2] } } }, "choice"],
    [{ $ref: "#/$defs/Nowhere" }, "text"],
    [{ type: "string", enum: "no list", properties: 5 }, "text"],
  ])("%j is a field of the kind %s", (schema, kind) => {
    expect(one(schema)?.kind).toBe(kind);
  });

  it("an object has a field for each property, with the label, the description and the default", () => {
    const fields = formFields({
      $ref: "#/$defs/Person",
      $defs: {
        Person: {
          type: "object",
          properties: {
            name: { type: "string", title: "Name", description: "First name", default: "Ada" },
            size: { $ref: "#/$defs/Size", default: "s" },
            tags: { type: "array", items: { type: "string" }, default: ["x", "y"] },
          },
          required: ["name"],
        },
        Size: { enum: ["s", "m"] },
      },
    });
    expect(fields.map(({ name, label, isRequired }) => [name, label, isRequired])).toEqual([
      ["name", "Name", true],
      ["size", "size", false],
      ["tags", "tags", false],
    ]);
    expect(initialValues(fields)).toEqual({ name: "Ada", size: [0], tags: "x\ny" });
  });
});

describe("values", () => {
  const read = (schema: JsonObject, typed: FieldValue) => readForm(formFields(schema), { "": typed });

  it.each<[JsonObject, FieldValue, JsonValue]>([
    [{}, "42", "42"],
    [{ type: "integer" }, "42", 42],
    [{ type: "number" }, " 1.5 ", 1.5],
    [{ type: "boolean" }, [1], false],
    [{ oneOf: [{ const: null, title: "None" }] }, [0], null],
    [{ type: "array", items: { enum: ["a", "b"] } }, [0, 1], ["a", "b"]],
    [{ type: "array", items: { enum: ["a", "b"] } }, [], []],
    [{ type: "array", items: { type: "string" } }, "a\n\nb", ["a", "b"]],
    [{ type: "object" }, '{"a": 1}', { a: 1 }],
  ])("%j reads %j as %j", (schema, typed, value) => {
    expect(read(schema, typed)).toEqual({ isValid: true, value });
  });

  it.each<[JsonObject, FieldValue, string]>([
    [{}, "", "Fill in a value."],
    [{ type: "integer" }, "1.5", "This is not a whole number."],
    [{ type: "number" }, "x", "This is not a number."],
    [{ enum: ["a"] }, [], "Choose one."],
    [{ type: "object" }, "{", "This is not valid JSON"],
  ])("%j refuses %j", (schema, typed, error) => {
    const result = read(schema, typed);
    expect(result.isValid).toBe(false);
    expect(result.isValid ? "" : result.errors[""]).toContain(error);
  });

  it("what is not required can be left out, and a required text can be empty", () => {
    const fields = formFields({
      properties: { name: { type: "string" }, age: { type: "integer" } },
      required: ["name"],
    });
    expect(readForm(fields, {})).toEqual({ isValid: true, value: { name: "" } });
  });
});
