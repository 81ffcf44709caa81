import { type ButtonHTMLAttributes, forwardRef } from "react";
import "./ui.css";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** `quiet` has no border, `main` marks the primary action. */
  variant?: "plain" | "main" | "quiet" | "danger";
}

export const Button = forwardRef<HTMLButtonElement, Props>(function Button(
  { variant = "plain", className = "", type = "button", ...rest },
  ref,
) {
  return <button ref={ref} type={type} className={`button button-${variant} ${className}`} {...rest} />;
});
