import { type ReactNode, useRef } from "react";
import { CopyButton } from "../ui/CopyButton";

function asTabs(table: HTMLTableElement | null): string {
  const cell = (element: HTMLTableCellElement) => (element.textContent ?? "").replace(/[\t\n]+/g, " ").trim();
  return [...(table?.rows ?? [])].map((row) => [...row.cells].map(cell).join("\t")).join("\n");
}

/** A table that scrolls in itself, and can be copied into a sheet. */
export function Table({ children }: { children: ReactNode }) {
  const table = useRef<HTMLTableElement>(null);
  return (
    <div className="text-table">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="text-table-scroll" tabIndex={0} aria-label="Table">
        <table ref={table}>{children}</table>
      </section>
      <div className="text-table-copy">
        <CopyButton text={() => asTabs(table.current)} label="Copy table" />
      </div>
    </div>
  );
}
