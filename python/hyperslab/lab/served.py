"""Serve the files of a group from the servers that its conditions name, each behind a network with a delay."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hyperslab.lab import cache, serving

BUCKET = "files"  # the bucket of S3 servers; the folder of all files


class ServedFiles:
    """Servers for the files of one folder. Each starts when it is first needed; `close` ends them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stack = ExitStack()
        self._ports: dict[str, int] = {}
        self._far: dict[tuple[str, float], serving.Far] = {}
        self._uploaded: set[Path] = set()
        self.folder: Path = directory / BUCKET
        self.folder.mkdir()

    def location(self, path: Path, server: str, round_trip_ms: float) -> tuple[str, dict[str, Any]]:
        """The URL and storage options of a file in the folder, by a port that no client has used yet."""
        if server == "moto":
            self._upload(path)
        key = (server, round_trip_ms)
        if key not in self._far:
            seconds = round_trip_ms / 2000
            self._far[key] = self._stack.enter_context(serving.far(self._port(server), seconds))
        at = f"http://127.0.0.1:{self._far[key].port()}"
        name = path.relative_to(self.folder).as_posix()
        if server == "nginx":
            return f"{at}/{name}", {}
        return f"s3://{BUCKET}/{name}", {"key": serving.ACCESS, "secret": serving.SECRET, "endpoint_url": at}

    def _port(self, server: str) -> int:
        if server not in self._ports:
            self._ports[server] = self._started(server)
        return self._ports[server]

    def _started(self, server: str) -> int:
        if server == "nginx":
            return self._stack.enter_context(serving.nginx(self._directory / server, self.folder)).port
        started = serving.moto() if server == "moto" else serving.versitygw(self._directory)
        return int(self._stack.enter_context(started).rpartition(":")[2])

    def _upload(self, path: Path) -> None:
        """Upload a file, or everything below a folder, to a server that keeps its own files."""
        if path in self._uploaded:
            return
        import boto3

        said = {"aws_access_key_id": serving.ACCESS, "aws_secret_access_key": serving.SECRET}
        at = f"http://127.0.0.1:{self._port('moto')}"
        client = boto3.client("s3", endpoint_url=at, region_name="us-east-1", **said)
        if not self._uploaded:
            client.create_bucket(Bucket=BUCKET)
        for file in cache.files_below(path):
            client.upload_file(str(file), BUCKET, file.relative_to(self.folder).as_posix())
        self._uploaded.add(path)

    def close(self) -> None:
        """Stop the servers."""
        self._stack.close()
