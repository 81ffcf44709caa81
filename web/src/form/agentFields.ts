/** The fields of an agent's form: its input, and the context that a request may set. Pure. */

import type { AgentInfo } from "../client/api";
import type { JsonObject } from "../wire/events";
import { type FormField, jsonField, propertyFields } from "./schemaFields";

/** What a request contains besides a question. */
export interface RunValues {
  readonly input?: JsonObject;
  readonly context?: JsonObject;
}

export interface AgentFields {
  /** Whether the agent can be asked in words. */
  readonly takesQuestion: boolean;
  readonly input: readonly FormField[];
  /** Whether the input is an object with keys that are not known. Then `input` is one field of the whole object. */
  readonly isOpenInput: boolean;
  readonly context: readonly FormField[];
}

export const NO_FIELDS: AgentFields = { takesQuestion: true, input: [], isOpenInput: false, context: [] };

const WHOLE_INPUT = jsonField({ name: "input", title: "Input", jsonType: "object" });

/** The fields of an agent: its input without the key of the question, and the context that a request may set. */
export function fieldsOfAgent(agent: AgentInfo | undefined): AgentFields {
  if (agent === undefined) return NO_FIELDS;
  const { input_schema: input, question_key: key = "", context_from_request: allowed = false } = agent;
  const isOpenInput = input !== undefined && input.properties === undefined;
  const context = [...propertyFields(agent.configurable_schema), ...propertyFields(agent.context_schema)];
  return {
    takesQuestion: input === undefined || key !== "",
    input: isOpenInput ? [WHOLE_INPUT] : requiredFirst(propertyFields(input).filter((field) => field.name !== key)),
    isOpenInput,
    context: requiredFirst(context).filter((field) =>
      typeof allowed === "boolean" ? allowed : allowed.includes(field.name),
    ),
  };
}

function requiredFirst(fields: readonly FormField[]): readonly FormField[] {
  return [...fields.filter((field) => field.isRequired), ...fields.filter((field) => !field.isRequired)];
}

/** Input values as text for people, in the same form as the server's. */
export function inputText(values: JsonObject): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("\n");
}
