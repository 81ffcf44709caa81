import { type ReactNode, useMemo, useRef, useState } from "react";
import type { AgentInfo } from "../client/api";
import { type AgentFields, fieldsOfAgent, type RunValues } from "./agentFields";
import { FormFields } from "./FormFields";
import { type Collected, collect, type Draft, type FormErrors, type FormField } from "./schemaFields";
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
const NO_ERRORS: FormErrors = {};

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
      const found = collect(fields.input, input, { isComplete: isNew, allowsEmpty: false });
      const settings = collect(fields.context, context, { isComplete: true, allowsEmpty: false });
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
  readonly errors: FormErrors;
  onChange(draft: Draft): void;
}

/** Shows the fields that have to be filled in, and the others on demand. If none has to be, all are shown alike. */
function InputFields({ fields, isNew, ...rest }: GroupProps & { fields: AgentFields; isNew: boolean }) {
  const needed = fields.input.filter((field) => field.isRequired && isNew);
  const others = fields.input.filter((field) => !needed.includes(field));
  const isOpen = !fields.takesQuestion && needed.length === 0;
  return (
    <>
      <FormFields isCompact fields={needed} {...rest} />
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
      <FormFields isCompact fields={fields} {...rest} />
    </details>
  );
}
