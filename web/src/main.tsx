import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { AuthGate } from "./app/AuthGate";
import { ErrorBoundary } from "./app/ErrorBoundary";
import { Stores, StoresContext } from "./app/pageStores";
import "./styles/base.css";

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <ErrorBoundary>
        <StoresContext value={new Stores()}>
          <AuthGate>
            <App />
          </AuthGate>
        </StoresContext>
      </ErrorBoundary>
    </StrictMode>,
  );
