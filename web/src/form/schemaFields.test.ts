import { describe, expect, it } from "vitest";
import type { JsonObject, JsonValue } from "../wire/events";
import { collect, defaultDraft, type FieldDraft, filledForm, formFields } from "./schemaFields";

const one = (schema: JsonObject) => formFields(schema)[0];
const property = (schema: JsonObject, root: JsonObject = {}) =>
  formFields({ ...root, properties: { name: schema } })[0];
const COMPLETE = { isComplete: true, allowsEmpty: true };
const NOT_EMPTY = { isComplete: true, allowsEmpty: false };

describe("fields", () => {
  it.each<[JsonObject, string]>([
    [{}, "text"],
    [{ type: "string" }, "text"],
    [{ type: ["string", "null"] }, "text"],
    [{ type: "integer" }, "integer"],
    [{ type: ["integer", "number"] }, "number"],
    [{ type: "boolean" }, "choice"],
    [{ enum: ["a", 1, null] }, "choice"],
    [{ const: 1 }, "choice"],
    [{ oneOf: [{ const: "a" }, { const: "b", title: "B" }] }, "choice"],
    [{ anyOf: [{ enum: ["a"] }, { type: "null" }] }, "choice"],
    [{ type: "array", items: { enum: ["a"] } }, "choices"],
    [{ type: "array", items: { type: "string" } }, "list"],
    [{ type: "array", items: { type: "object" } }, "json"],
    [{ type: "array" }, "json"],
    [{ type: "object" }, "json"],
    [{ anyOf: [{ type: "string" }, { type: "object" }] }, "json"],
    [{ anyOf: [{ type: "string" }, { type: "object" }, { type: "null" }] }, "json"],
    [{ anyOf: [{ type: "integer" }, { type: "null" }] }, "integer"],
    [{ $ref: "#/$defs/Size", $defs: { Size: { enum: [1, 2] } } }, "choice"],
    [{ $ref: "#/$defs/Nowhere" }, "text"],
    [{ type: "string", enum: "no list", properties: 5 }, "text"],
  ])("%j is a field of the kind %s", (schema, kind) => {
    expect(one(schema)?.kind).toBe(kind);
  });

  it("a property without a type takes any value", () => {
    expect(property({ title: "Anything" })?.kind).toBe("any");
  });

  it("an object has a field for each property, with the title, the description and the default", () => {
    const fields = formFields({
      $ref: "#/$defs/Person",
      $defs: {
        Person: {
          type: "object",
          properties: {
            name: { type: "string", title: "Name", description: "First name", default: "Ada" },
            size: { $ref: "#/$defs/Size", default: "s" },
            tags: { type: "array", items: { type: "string" }, default: ["x", "y"] },
            words: { type: "integer", minimum: 1, maximum: 500, default: null },
          },
          required: ["name"],
        },
        Size: { enum: ["s", "m"] },
      },
    });
    expect(fields.map(({ name, title, isRequired }) => [name, title, isRequired])).toEqual([
      ["name", "Name", true],
      ["size", "size", false],
      ["tags", "tags", false],
      ["words", "words", false],
    ]);
    expect(fields[0]).toMatchObject({ description: "First name", defaultValue: "Ada" });
    expect(fields[3]).toMatchObject({ minimum: 1, maximum: 500, defaultValue: undefined });
    expect(defaultDraft(fields)).toEqual({ name: "Ada", size: [0], tags: "x\ny", words: "" });
  });

  it("a reference keeps the title and the description beside it", () => {
    const $defs: JsonObject = { Person: { type: "object", title: "Person class" } };
    const field = property({ $ref: "#/$defs/Person", title: "Person", description: "Who asks" }, { $defs });
    expect(field).toMatchObject({ title: "Person", description: "Who asks", jsonType: "object" });
  });
});

describe("values", () => {
  const read = (schema: JsonObject, typed: FieldDraft) => collect(formFields(schema), { "": typed }, COMPLETE);
  const readProperty = (schema: JsonObject, typed: FieldDraft) =>
    collect(formFields({ properties: { name: schema }, required: ["name"] }), { name: typed }, COMPLETE);

  it.each<[JsonObject, FieldDraft, JsonValue]>([
    [{}, "42", "42"],
    [{ type: "integer" }, " 42 ", 42],
    [{ type: "number" }, " 1.5 ", 1.5],
    [{ type: "boolean" }, [1], false],
    [{ oneOf: [{ const: null, title: "None" }] }, [0], null],
    [{ type: "array", items: { enum: ["a", "b"] } }, [0, 1], ["a", "b"]],
    [{ type: "array", items: { type: "string" } }, "a\n\nb", ["a", "b"]],
    [{ type: "object" }, '{"a": 1}', { a: 1 }],
    [{ anyOf: [{ type: "string" }, { type: "integer" }] }, "5", 5],
  ])("%j reads %j as %j", (schema, typed, value) => {
    expect(read(schema, typed)).toEqual({ values: { "": value }, errors: {} });
  });

  it.each<[JsonObject, FieldDraft, JsonValue]>([
    [{}, "5", 5],
    [{}, "five", "five"],
    [{ type: "string" }, "", ""],
    [{ type: "array", items: { enum: ["a", "b"] } }, [], []],
    [{ type: "array", items: { type: "string" } }, "", []],
  ])("the property %j reads %j as %j", (schema, typed, value) => {
    expect(readProperty(schema, typed)).toEqual({ values: { name: value }, errors: {} });
  });

  it.each<[JsonObject, FieldDraft, string]>([
    [{}, "", "Fill in a value."],
    [{ type: "integer" }, "1.5", "This is not a whole number."],
    [{ type: "integer", minimum: 1 }, "0", "At least 1."],
    [{ type: "integer", maximum: 500 }, "501", "At most 500."],
    [{ type: "number" }, "x", "This is not a number."],
    [{ enum: ["a"] }, [], "Choose one."],
    [{ type: "object" }, "[]", 'An object, as {"a": 1}.'],
    [{ type: "array" }, "{", 'This is not valid JSON. A list, as ["a", "b"].'],
    [
      { anyOf: [{ type: "string" }, { type: "integer" }] },
      "a",
      "This is not valid JSON. A text in quotes, a number, a list or an object.",
    ],
  ])("%j refuses %j", (schema, typed, error) => {
    expect(read(schema, typed).errors).toEqual({ "": error });
  });

  it("an empty optional field is left out, and an empty required text only if texts may not be empty is an error", () => {
    const fields = formFields({
      properties: { name: { type: "string" }, age: { type: "integer" } },
      required: ["name"],
    });
    expect(collect(fields, {}, COMPLETE)).toEqual({ values: { name: "" }, errors: {} });
    expect(collect(fields, {}, NOT_EMPTY)).toEqual({ values: {}, errors: { name: "Fill in a value." } });
    expect(collect(fields, {}, { isComplete: false, allowsEmpty: false })).toEqual({ values: {}, errors: {} });
  });
});

describe("filled form", () => {
  const schema: JsonObject = {
    properties: {
      path: { type: "string" },
      lines: { type: "array", items: { type: "string" } },
      mode: { enum: ["add", "replace"] },
      note: { type: "string" },
    },
    required: ["path"],
  };

  it("has each value in its field, and reads the same values", () => {
    const values: JsonObject = { path: "a\nb", lines: ["x", "y"], mode: "replace" };
    const form = filledForm(schema, values);
    expect(form?.draft).toEqual({ path: "a\nb", lines: "x\ny", mode: [1], note: "" });
    expect(collect(form?.fields ?? [], form?.draft ?? {}, COMPLETE)).toEqual({ values, errors: {} });
  });

  it.each<JsonObject>([
    { path: 5 },
    { path: "", note: "" },
    { path: "a", lines: ["x\ny", ""] },
    { path: "a", lines: [] },
    { path: "a", mode: "other" },
    { path: "a", note: null },
  ])("keeps %j by editing as JSON what a field would change", (values) => {
    const form = filledForm(schema, values);
    expect(form?.fields.some((field) => field.kind === "json")).toBe(true);
    expect(collect(form?.fields ?? [], form?.draft ?? {}, COMPLETE)).toEqual({ values, errors: {} });
  });

  it("does not exist for values that the schema does not name", () => {
    expect(filledForm(schema, { path: "a", other: 1 })).toBeNull();
    expect(filledForm({ type: "object" }, {})).toBeNull();
  });
});
