"""yaml-language-server, which editors check YAML with: what it says of a file."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

NAME = "yaml-language-server"
SETTINGS = {"yaml": {"validate": True, "schemaStore": {"enable": False}}}


@contextmanager
def server() -> "Iterator[subprocess.Popen[bytes]]":
    """The server, started; a test without it is skipped."""
    program = shutil.which(NAME)
    if program is None:
        pytest.skip(f"{NAME} is not on the PATH; npm install {NAME} brings it, .ci/run does")
    started = subprocess.Popen([program, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def marked(paths: Sequence[Path]) -> dict[str, list[str]]:
    """What an editor marks in each file, `line: message`, by the file's name."""
    with server() as running:
        assert running.stdin is not None
        assert running.stdout is not None
        send(running.stdin, id=1, method="initialize", params={"processId": None, "rootUri": None, "capabilities": {}})
        while receive(running.stdout).get("id") != 1:
            pass
        send(running.stdin, method="initialized", params={})
        send(running.stdin, method="workspace/didChangeConfiguration", params={"settings": SETTINGS})
        for path in paths:
            document = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": path.read_text("utf-8")}
            send(running.stdin, method="textDocument/didOpen", params={"textDocument": document})
        names, found = {path.as_uri(): path.name for path in paths}, dict[str, list[str]]()
        while len(found) < len(paths):
            message = receive(running.stdout)
            if message.get("method") == "workspace/configuration":
                send(running.stdin, id=message["id"], result=[None] * len(message["params"]["items"]))
            elif message.get("method") == "textDocument/publishDiagnostics":
                said = message["params"]["diagnostics"]
                found[names[message["params"]["uri"]]] = [
                    f"{each['range']['start']['line'] + 1}: {each['message']}" for each in said
                ]
        return found


def send(stream: IO[bytes], **message: Any) -> None:
    """One message to the server."""
    content = json.dumps({"jsonrpc": "2.0", **message}).encode()
    stream.write(b"Content-Length: %d\r\n\r\n" % len(content) + content)
    stream.flush()


def receive(stream: IO[bytes]) -> dict[str, Any]:
    """The server's next message."""
    length = 0
    while line := stream.readline().strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    content = stream.read(length)
    assert content, f"{NAME} ended"
    return dict(json.loads(content))
