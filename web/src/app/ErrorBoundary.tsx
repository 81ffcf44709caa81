import { Component, type ReactNode } from "react";
import { Button } from "../ui/Button";

interface State {
  readonly error: Error | null;
}

/** Shows an error message instead of components that throw, so that the rest of the page still works. */
export class ErrorBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <div className="trouble" role="alert">
        <p>This part of the page broke: {this.state.error.message}</p>
        <Button onClick={() => this.setState({ error: null })}>Try again</Button>
        <Button onClick={() => location.reload()}>Reload the page</Button>
      </div>
    );
  }
}
