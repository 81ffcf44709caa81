import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode, RefObject } from "react";
import { Button } from "./Button";
import "./overlays.css";

interface Props {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  /** A sentence below the title. */
  description?: ReactNode;
  /** The title is for those who cannot see the dialog; it has no head then. */
  hideTitle?: boolean;
  className?: string;
  /** What has the focus when it opens; otherwise the first that can. */
  initialFocus?: RefObject<HTMLElement | null>;
  children?: ReactNode;
}

/** A window over the page. Esc, the cross and a click beside it close it; the focus goes back to where it was. */
export function Dialog({
  open,
  onOpenChange,
  title,
  description,
  hideTitle = false,
  className = "",
  initialFocus,
  children,
}: Props) {
  const untold = description === undefined ? { "aria-describedby": undefined } : {};
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="dialog-veil" />
        <Radix.Content
          className={`dialog ${className}`}
          {...untold}
          onOpenAutoFocus={(event) => {
            if (!initialFocus?.current) return;
            event.preventDefault();
            initialFocus.current.focus();
          }}
        >
          {hideTitle ? (
            <Radix.Title className="visually-hidden">{title}</Radix.Title>
          ) : (
            <header className="dialog-head">
              <Radix.Title className="dialog-title">{title}</Radix.Title>
              <Radix.Close asChild>
                <Button variant="quiet" aria-label="Close">
                  <X size={16} aria-hidden="true" />
                </Button>
              </Radix.Close>
            </header>
          )}
          {description !== undefined && (
            <Radix.Description className="dialog-description">{description}</Radix.Description>
          )}
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
