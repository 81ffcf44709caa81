import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

interface Props {
  readonly icon: LucideIcon;
  readonly isError?: boolean;
  readonly children: ReactNode;
}

/** A line across the conversation that shows the state of the connection or an error. */
export function Banner({ icon: Icon, isError = false, children }: Props) {
  return (
    <p className={isError ? "banner banner-bad" : "banner"} role={isError ? "alert" : "status"}>
      <Icon size={15} aria-hidden="true" />
      {children}
    </p>
  );
}
