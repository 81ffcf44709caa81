"""Proxies as processes, with the files of `deploy/`, in which only addresses and certificates are replaced."""

import os
import shutil
import socket
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.wait import DEADLINE, wait_for
from tests.system.openwebui.processes import ROOT, Program
from tests.system.processes.server_process import free_port

DEPLOY = ROOT / "deploy"
NGINX = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/unused1;
    uwsgi_temp_path {folder}/unused2;
    scgi_temp_path {folder}/unused3;
    gzip on;
    gzip_types text/event-stream application/json;
    include conf.d/*.conf;
}}
"""
"""The configuration of a host that compresses responses, which the files of `deploy/` must disable for streams."""
CADDY = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"
"""Disables the download of certificates and the use of the standard ports."""
READ_TIMEOUT = "proxy_read_timeout 3700s;"


class Certificate(NamedTuple):
    """For localhost, signed by itself."""

    file: Path
    key: Path

    @classmethod
    def made(cls, folder: Path) -> "Certificate":
        made = cls(folder / "localhost.pem", folder / "localhost.key")
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        command += ["-addext", "subjectAltName=DNS:localhost", "-out", str(made.file), "-keyout", str(made.key)]
        subprocess.run(command, check=True, capture_output=True)
        return made


class Site(NamedTuple):
    """A Limelight server as its clients see it."""

    name: str
    url: str
    root: str
    limelight: Program


def replaced(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert old in text, f"the file of deploy/ has no {old!r} any more"
        text = text.replace(old, new)
    return text


@contextmanager
def nginx(
    folder: Path, certificate: Certificate, alone: Program, below: Program, *, impatient: bool = False
) -> Generator[list[Site]]:
    """nginx with the files of `deploy/`. With `impatient` its read time-out is a few seconds."""
    folder.mkdir()
    (folder / "conf.d").mkdir()
    (folder / "snippets").mkdir()
    ports = {"limelight": free_port(), "limelight-subpath": free_port()}
    hosts = {"limelight": ("agents.example.org", alone), "limelight-subpath": ("www.example.org", below)}
    for name, (host, program) in hosts.items():
        changes = {
            "listen 443 ssl;": f"listen 127.0.0.1:{ports[name]} ssl;",
            f"server_name {host};": "server_name localhost;",
            f"/etc/ssl/{host}.pem": str(certificate.file),
            f"/etc/ssl/{host}.key": str(certificate.key),
            "127.0.0.1:8000": _address(program),
        }
        if name == "limelight":
            changes["listen 80;"] = f"listen 127.0.0.1:{free_port()};"
        text = (DEPLOY / "nginx" / f"{name}.conf").read_text()
        (folder / "conf.d" / f"{name}.conf").write_text(replaced(text, changes))
    snippet = (DEPLOY / "nginx" / "limelight-proxy.conf").read_text()
    shutil.copy(DEPLOY / "nginx" / "limelight-limits.conf", folder / "conf.d")
    if impatient:
        snippet = replaced(snippet, {READ_TIMEOUT: "proxy_read_timeout 4s;"})
    (folder / "snippets" / "limelight-proxy.conf").write_text(snippet)
    with _running(_nginx(folder), folder, list(ports.values())):
        name = "impatient nginx" if impatient else "nginx"
        yield [
            Site(f"{name}, alone", f"https://localhost:{ports['limelight']}", "", alone),
            Site(f"{name}, below", f"https://localhost:{ports['limelight-subpath']}/limelight", "/limelight", below),
        ]


@contextmanager
def plain_nginx(folder: Path, program: Program) -> Generator[str]:
    """nginx with a `proxy_pass` and nothing else."""
    (folder / "conf.d").mkdir(parents=True)
    port = free_port()
    block = f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {program.url}; }} }}"
    (folder / "conf.d" / "plain.conf").write_text(block)
    with _running(_nginx(folder), folder, [port]):
        yield f"http://127.0.0.1:{port}"


def _nginx(folder: Path) -> list[str]:
    user = "user root;" if os.geteuid() == 0 else ""  # the default user of nginx cannot read the folder
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, user=user))
    binary = shutil.which("nginx") or "/usr/sbin/nginx"
    return [binary, "-p", str(folder), "-c", "nginx.conf", "-e", str(folder / "error.log")]


@contextmanager
def caddy(folder: Path, certificate: Certificate, alone: Program, below: Program) -> Generator[list[Site]]:
    folder.mkdir()
    ports = free_port(), free_port()
    tls = f"\n\tbind 127.0.0.1\n\ttls {certificate.file} {certificate.key}"
    changes = {
        "agents.example.org {": f"https://localhost:{ports[0]} {{{tls}",
        "www.example.org {": f"https://localhost:{ports[1]} {{{tls}",
        "reverse_proxy 127.0.0.1:8000": f"reverse_proxy {_address(alone)}",
        "/limelight/* 127.0.0.1:8000": f"/limelight/* {_address(below)}",
    }
    (folder / "Caddyfile").write_text(CADDY + replaced(caddyfile(), changes))
    with _running(["caddy", "run", "--config", str(folder / "Caddyfile")], folder, list(ports)):
        yield [
            Site("caddy, alone", f"https://localhost:{ports[0]}", "", alone),
            Site("caddy, below", f"https://localhost:{ports[1]}/limelight", "/limelight", below),
        ]


def caddyfile() -> str:
    """Return the Caddyfile of `deploy/`, with the setting's name of older versions if the installed Caddy is older."""
    text = (DEPLOY / "caddy" / "Caddyfile").read_text()
    is_old = _caddy_version() < (2, 7)
    return replaced(text, {"\t\trequest_buffers 10MiB": "\t\tbuffer_requests"}) if is_old else text


def _caddy_version() -> tuple[int, ...]:
    printed = subprocess.run(["caddy", "version"], check=True, capture_output=True, text=True).stdout
    return tuple(int(number) for number in printed.split()[0].removeprefix("v").split(".")[:2])


@contextmanager
def _running(command: list[str], folder: Path, ports: list[int]) -> Generator[None]:
    """A process that listens on these ports, until the block ends."""
    log = folder / "output.log"
    with log.open("ab") as output:
        # Caddy writes to its home folder.
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env={"HOME": str(folder)})
    try:
        wait_for(f"{command[0]} to listen (its log is {log})", lambda: process.poll() is not None or _listen(ports))
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        try:
            process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(DEADLINE)


def _listen(ports: list[int]) -> bool:
    for port in ports:
        socket.create_connection(("127.0.0.1", port), 1).close()
    return True


def _address(program: Program) -> str:
    return program.url.removeprefix("http://")
