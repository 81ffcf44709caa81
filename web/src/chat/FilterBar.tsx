import { Search, X } from "lucide-react";
import { useEffect, useId, useMemo, useRef } from "react";
import { countTools, type Filter, NO_FILTER } from "../log/search";
import type { RunView } from "../log/viewModel";
import { Button } from "../ui/Button";
import "./search.css";
import { escapeInvisible } from "../text/invisibleCharacters";

interface Props {
  readonly runs: readonly RunView[];
  readonly filter: Filter;
  onChange(filter: Filter): void;
  onClose(): void;
}

/** The search bar of a session: words, a tool, and errors only. */
export function FilterBar({ runs, filter, onChange, onClose }: Props) {
  const field = useRef<HTMLInputElement>(null);
  const id = useId();
  const tools = useMemo(() => countTools(runs), [runs]);
  useEffect(() => field.current?.focus(), []);
  const close = () => {
    onChange(NO_FILTER);
    onClose();
  };
  return (
    <search className="filter">
      <Search size={15} aria-hidden="true" />
      <label className="visually-hidden" htmlFor={id}>
        Search in steps and results
      </label>
      <input
        id={id}
        ref={field}
        className="filter-text"
        placeholder="Search in steps and results"
        value={filter.text}
        onChange={(event) => onChange({ ...filter, text: event.target.value })}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          close();
        }}
      />
      <select
        aria-label="Tool"
        value={filter.tool}
        onChange={(event) => onChange({ ...filter, tool: event.target.value })}
      >
        <option value="">All tools</option>
        {tools.map(({ name, count }) => (
          <option key={name} value={name}>
            {escapeInvisible(name)} ({count})
          </option>
        ))}
      </select>
      <label className="filter-errors">
        <input
          type="checkbox"
          checked={filter.errorsOnly}
          onChange={(event) => onChange({ ...filter, errorsOnly: event.target.checked })}
        />
        Errors only
      </label>
      <Button variant="quiet" aria-label="Close search" onClick={close}>
        <X size={15} aria-hidden="true" />
      </Button>
    </search>
  );
}
