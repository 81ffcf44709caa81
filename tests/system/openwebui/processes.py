"""The programs of these tests as processes: Open WebUI from the cache folder, and Limelight."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

import httpx

from tests.support.wait import DEADLINE, wait_for
from tests.system.processes.server_process import free_port

ROOT = Path(__file__).parents[3]
AGENTS_FILE = Path(__file__).parent / "agents.py"
EMAIL, PASSWORD = "admin@example.org", "correct horse"
KEY = "sesame-key"


class Program:
    """A server process that can be started and killed several times."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str], url: str, start: float) -> None:
        self.url = url
        self._command = command
        self._log = log
        self._environment = {**os.environ, **environment}
        self._start_seconds = start
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=self._environment)
        wait_for(f"{self._command[0]} to answer (its log is {self._log})", self._answers, self._start_seconds)

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(DEADLINE)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"{self._command[0]} ended: {self._log.read_text()[-2000:]}")
        return httpx.get(f"{self.url}/health", timeout=2).status_code == 200


def limelight(folder: Path, *targets: str, **environment: str) -> Program:
    """`limelight serve` with its data and its gates in the folder."""
    port = free_port()
    (folder / "gates").mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "limelight",
        "serve",
        "--port",
        str(port),
        "--data",
        str(folder / "data"),
        *targets,
    ]
    environment = {
        "LIMELIGHT_API_KEY": KEY,
        "LIMELIGHT_UNDERSTUDY_PACE_MS": "0",
        "LIMELIGHT_GATES": str(folder / "gates"),
        **environment,
    }
    return Program(command, folder / "limelight.log", environment, f"http://127.0.0.1:{port}", DEADLINE)


def open_webui(folder: Path) -> Program:
    """Open WebUI with an empty database, closed to the internet."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    installed = subprocess.run([ROOT / "tools" / "install_openwebui.sh"], stdout=subprocess.PIPE, check=True, text=True)
    url = f"http://127.0.0.1:{port}"
    environment = {
        "DATA_DIR": str(folder / "webui"),
        "WEBUI_SECRET_KEY": "for tests only",
        "OFFLINE_MODE": "true",
        "HF_HUB_OFFLINE": "1",
        "ENABLE_OLLAMA_API": "false",
        "ENABLE_OPENAI_API": "false",
        "RAG_EMBEDDING_ENGINE": "openai",
        "ENABLE_VERSION_UPDATE_CHECK": "false",
        "CORS_ALLOW_ORIGIN": url,
    }
    (folder / "webui").mkdir(exist_ok=True)
    command = [installed.stdout.strip(), "serve", "--host", "127.0.0.1", "--port", str(port)]
    return Program(command, folder / "openwebui.log", environment, url, 180)


def sign_up(url: str) -> str:
    """Create the first user, who is the administrator, and return the token."""
    body = {"name": "Ann Admin", "email": EMAIL, "password": PASSWORD}
    reply = httpx.post(f"{url}/api/v1/auths/signup", json=body, timeout=DEADLINE)
    reply.raise_for_status()
    token = reply.json()["token"]
    settings = {"ui": {"showChangelog": False, "version": "0.12.4"}}
    httpx.post(
        f"{url}/api/v1/users/user/settings/update", json=settings, headers={"Authorization": f"Bearer {token}"}
    ).raise_for_status()
    return token
