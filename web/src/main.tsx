import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { Door } from "./app/AuthGate";
import { Trouble } from "./app/ErrorBoundary";
import "./styles/base.css";

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <Trouble>
        <Door>
          <App />
        </Door>
      </Trouble>
    </StrictMode>,
  );
