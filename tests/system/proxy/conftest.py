"""Two servers and both proxies for all tests. Each test runs at every site, unless it selects one."""

import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.support.wait import DEADLINE
from tests.system.openwebui.processes import KEY, limelight
from tests.system.page.conftest import FLAGS
from tests.system.proxy.proxies import Certificate, Site, caddy, nginx

AGENTS_FILE = Path(__file__).parent / "agents.py"
SITES = ("nginx, alone", "nginx, below", "caddy, alone", "caddy, below")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate.made(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def gates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gates")


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate, gates: Path) -> Iterator[dict[str, Site]]:
    folder = tmp_path_factory.mktemp("proxy")
    environment = {"LIMELIGHT_GATES": str(gates), "LIMELIGHT_HEARTBEAT_SECONDS": "0.5"}
    with (
        limelight(folder / "alone", f"{AGENTS_FILE}:stage", **environment) as alone,
        limelight(folder / "below", f"{AGENTS_FILE}:stage", **environment, LIMELIGHT_ROOT_PATH="/limelight") as below,
        nginx(folder / "nginx", certificate, alone, below) as of_nginx,
        nginx(folder / "impatient", certificate, alone, below, impatient=True) as of_impatient,
        caddy(folder / "caddy", certificate, alone, below) as of_caddy,
    ):
        yield {site.name: site for site in (*of_nginx, *of_impatient, *of_caddy)}


@pytest.fixture(params=SITES)
def site(sites: dict[str, Site], request: pytest.FixtureRequest) -> Site:
    return sites[request.param]


@pytest.fixture
def trust(certificate: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate.file))


@pytest.fixture
def http(site: Site, trust: ssl.SSLContext) -> Iterator[httpx.Client]:
    """A client with a key, outside of the proxy."""
    options: dict[str, Any] = {"base_url": site.url, "verify": trust, "trust_env": False, "timeout": DEADLINE}
    with httpx.Client(**options, headers={"authorization": f"Bearer {KEY}"}) as http:
        yield http


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=DEADLINE * 1000)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        yield browser
        browser.close()
