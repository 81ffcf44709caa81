import { type FormEvent, type ReactNode, useId, useState } from "react";
import { errorMessage, serverUrl } from "../client/api";
import { useStore } from "../client/store";
import { Button } from "../ui/Button";
import { useStores } from "./pageStores";
import { useTabTitle } from "./tabTitle";
import "./authGate.css";

/**
 * Asks for an API key. The server stores the key in an HttpOnly cookie; the page does not store it.
 */
function ApiKeyScreen({ onEnter }: { onEnter(key: string): Promise<void> }) {
  const [key, setKey] = useState("");
  const [refused, setRefused] = useState("");
  const [isBusy, setBusy] = useState(false);
  const field = useId();
  useTabTitle("");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setRefused("");
    try {
      await onEnter(key.trim());
    } catch (error) {
      setRefused(errorMessage(error));
      setBusy(false);
    }
  };
  return (
    <main className="key-screen">
      <form className="key-card" onSubmit={submit}>
        <h1>
          <img src={serverUrl("icon.svg")} alt="" width={28} height={28} />
          Limelight
        </h1>
        <p>This server needs a key. Paste the one that you were given.</p>
        <label htmlFor={field}>Key</label>
        <input
          id={field}
          type="password"
          autoComplete="current-password"
          placeholder="lml_…"
          spellCheck={false}
          // biome-ignore lint/a11y/noAutofocus: the field is the only control of the screen
          autoFocus
          required
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
        {refused && (
          <p className="key-refused" role="alert">
            {refused}
          </p>
        )}
        <Button variant="main" type="submit" disabled={isBusy || key.trim() === ""}>
          {isBusy ? "Looking …" : "Continue"}
        </Button>
        <p className="key-hint">
          The operator of the server creates keys with <code>limelight keys create --user NAME</code>.
        </p>
      </form>
    </main>
  );
}

/** Shows the page, or asks for an API key if the server needs one. */
export function AuthGate({ children }: { children: ReactNode }) {
  const { auth } = useStores();
  const { isLocked } = useStore(auth);
  return isLocked ? <ApiKeyScreen onEnter={auth.logIn} /> : children;
}
