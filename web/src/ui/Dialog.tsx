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
  /** Whether only screen readers get the title, and the header is not shown. */
  hideTitle?: boolean;
  className?: string;
  /** The element that gets the focus; by default the first focusable one. */
  initialFocus?: RefObject<HTMLElement | null>;
  children?: ReactNode;
}

/** A modal dialog. Esc, the close button and a click outside close it; the previous element gets the focus back. */
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
  const noDescription = description === undefined ? { "aria-describedby": undefined } : {};
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="dialog-veil" />
        <Radix.Content
          className={`dialog ${className}`}
          {...noDescription}
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
