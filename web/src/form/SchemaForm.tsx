import { type ReactNode, useId, useMemo, useRef, useState } from "react";
import type { AgentInfo } from "../client/api";
import { escapeInvisible } from "../text/invisibleCharacters";
import type { JsonValue } from "../wire/events";
import {
  type AgentFields,
  type Collected,
  collect,
  type Draft,
  type FormField,
  fieldsOfAgent,
  jsonExample,
  type RunValues,
} from "./schemaFields";
import "./form.css";

/** The form of an agent that takes more than a question, for the message field. */
export interface AgentForm {
  readonly takesQuestion: boolean;
  /** Whether a message alone is not enough. */
  readonly isNeeded: boolean;
  /** The form; null if the agent takes only a question. */
  readonly element: ReactNode;
  /** Returns what the user has filled in; null if something is wrong, which the form then shows. */
  collect(): RunValues | null;
  clear(): void;
}

const NO_DRAFT: Draft = {};
const NO_ERRORS: Collected["errors"] = {};

/**
 * The form for the input and the context of an agent. Required fields have to be filled in only for the first message
 * of a conversation (`isNew`), because the agent remembers them.
 */
export function useAgentForm(agent: AgentInfo | undefined, isNew: boolean): AgentForm {
  const fields = useMemo(() => fieldsOfAgent(agent), [agent]);
  const [input, setInput] = useState(NO_DRAFT);
  const [context, setContext] = useState(NO_DRAFT);
  const [errors, setErrors] = useState({ input: NO_ERRORS, context: NO_ERRORS });
  const form = useRef<HTMLFieldSetElement>(null);
  const name = agent?.name;
  const [shownFor, setShownFor] = useState(name);
  const clear = () => {
    setInput(NO_DRAFT);
    setContext(NO_DRAFT);
    setErrors({ input: NO_ERRORS, context: NO_ERRORS });
  };
  if (shownFor !== name) {
    setShownFor(name);
    clear();
  }
  return {
    takesQuestion: fields.takesQuestion,
    isNeeded: !fields.takesQuestion || [...fields.input, ...fields.context].some((field) => field.isRequired),
    element:
      fields.input.length === 0 && fields.context.length === 0 ? null : (
        <fieldset className="agent-form" ref={form} aria-label="Input of the agent">
          <InputFields fields={fields} draft={input} errors={errors.input} isNew={isNew} onChange={setInput} />
          <FieldGroup
            title="Settings of the agent"
            fields={fields.context}
            draft={context}
            errors={errors.context}
            isOpen={fields.context.some((field) => field.isRequired)}
            onChange={setContext}
          />
        </fieldset>
      ),
    collect: () => {
      const found = collect(fields.input, input, isNew);
      const settings = collect(fields.context, context, true);
      setErrors({ input: found.errors, context: settings.errors });
      if (Object.keys(found.errors).length + Object.keys(settings.errors).length > 0) {
        requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
        return null;
      }
      return runValues(fields, found.values, settings.values);
    },
    clear,
  };
}

function runValues(fields: AgentFields, values: Collected["values"], context: Collected["values"]): RunValues {
  const input = fields.isOpenInput ? (values.input as Collected["values"] | undefined) : values;
  const hasInput = input !== undefined && (Object.keys(input).length > 0 || !fields.takesQuestion);
  return { ...(hasInput ? { input } : {}), ...(Object.keys(context).length > 0 ? { context } : {}) };
}

interface GroupProps {
  readonly draft: Draft;
  readonly errors: Collected["errors"];
  onChange(draft: Draft): void;
}

/** Shows the fields that have to be filled in, and the others on demand. If none has to be, all are shown alike. */
function InputFields({ fields, isNew, ...rest }: GroupProps & { fields: AgentFields; isNew: boolean }) {
  const needed = fields.input.filter((field) => field.isRequired && isNew);
  const others = fields.input.filter((field) => !needed.includes(field));
  const isOpen = !fields.takesQuestion && needed.length === 0;
  return (
    <>
      <Fields fields={needed} {...rest} />
      <FieldGroup title="More input" fields={others} isOpen={isOpen} {...rest} />
    </>
  );
}

/** Fields that the user can show and hide. Fields with an error are shown. */
function FieldGroup(props: GroupProps & { title: string; fields: readonly FormField[]; isOpen: boolean }) {
  const { title, fields, isOpen, ...rest } = props;
  if (fields.length === 0) return null;
  const hasError = fields.some((field) => rest.errors[field.name] !== undefined);
  return (
    <details className="form-group" open={isOpen || hasError || undefined}>
      <summary>{title}</summary>
      <Fields fields={fields} {...rest} />
    </details>
  );
}

function Fields({ fields, draft, errors, onChange }: GroupProps & { fields: readonly FormField[] }) {
  if (fields.length === 0) return null;
  return (
    <div className="form-fields">
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          value={draft[field.name] ?? ""}
          error={errors[field.name]}
          onChange={(value) => onChange({ ...draft, [field.name]: value })}
        />
      ))}
    </div>
  );
}

interface FieldProps {
  readonly field: FormField;
  readonly value: string;
  readonly error: string | undefined;
  onChange(value: string): void;
}

/** One field with its label, its description and what is wrong with it. */
function Field(props: FieldProps) {
  const { field, error } = props;
  const id = useId();
  const described = [
    ...(field.description === "" ? [] : [`${id}-about`]),
    ...(error === undefined ? [] : [`${id}-error`]),
  ].join(" ");
  return (
    <div className={`form-field form-${field.kind}`}>
      <label htmlFor={id}>
        {escapeInvisible(field.title)}
        {field.isRequired && <span className="form-required"> required</span>}
      </label>
      <Control {...props} id={id} described={described || undefined} />
      {field.description !== "" && (
        <p id={`${id}-about`} className="form-about">
          {escapeInvisible(field.description)}
        </p>
      )}
      {error !== undefined && (
        <p id={`${id}-error`} className="form-error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

function Control({
  field,
  value,
  error,
  id,
  described,
  onChange,
}: FieldProps & { id: string; described: string | undefined }) {
  const shared = {
    id,
    value,
    "aria-describedby": described,
    "aria-invalid": error !== undefined || undefined,
    "aria-required": field.isRequired || undefined,
  };
  switch (field.kind) {
    case "choice":
    case "boolean":
      return (
        <select {...shared} onChange={(event) => onChange(event.target.value)}>
          <option value="">{emptyOption(field)}</option>
          {optionsOf(field).map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      );
    case "integer":
    case "number":
      return (
        <input
          {...shared}
          inputMode={field.kind === "integer" && (field.minimum ?? -1) >= 0 ? "numeric" : "text"}
          autoComplete="off"
          placeholder={placeholderOf(field)}
          onChange={(event) => onChange(event.target.value)}
        />
      );
    default:
      return (
        <textarea
          {...shared}
          rows={field.kind === "json" ? 3 : 1}
          dir={field.kind === "json" ? "ltr" : "auto"}
          spellCheck={field.kind !== "json"}
          placeholder={placeholderOf(field)}
          onChange={(event) => onChange(event.target.value)}
        />
      );
  }
}

function optionsOf(field: FormField): readonly (readonly [string, string])[] {
  if (field.kind === "boolean")
    return [
      ["true", "Yes"],
      ["false", "No"],
    ];
  return field.choices.map((choice, at) => [String(at), escapeInvisible(textOf(choice))] as const);
}

function emptyOption(field: FormField): string {
  const { defaultValue } = field;
  if (defaultValue === undefined) return field.isRequired ? "Choose …" : "–";
  const text = typeof defaultValue === "boolean" ? (defaultValue ? "Yes" : "No") : textOf(defaultValue);
  return `Default: ${escapeInvisible(text)}`;
}

const MAX_PLACEHOLDER = 80;

function placeholderOf(field: FormField): string {
  if (field.defaultValue === undefined || field.defaultValue === "")
    return field.kind === "json" ? jsonExample(field) : "";
  const text = escapeInvisible(textOf(field.defaultValue));
  return `Default: ${text.length > MAX_PLACEHOLDER ? `${text.slice(0, MAX_PLACEHOLDER)}…` : text}`;
}

function textOf(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
