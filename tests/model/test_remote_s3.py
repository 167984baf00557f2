"""Files in S3, against a server of its protocol on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import fsspec
import pytest
from moto.server import ThreadedMotoServer

from trajconform import kit
from trajconform.mrec.reader import open_mrec
from trajconform.report.findings import check_file

VECTORS = kit.root() / "vectors"
OTJ = VECTORS / "otj" / "files" / "worked-example.otj"
GROWTH = VECTORS / "mrec" / "stores" / "growth.mrec"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    client = boto3.client("s3")
    client.create_bucket(Bucket="trajectories")
    for file in [OTJ, *(f for f in GROWTH.rglob("*") if f.is_file())]:
        client.put_object(Bucket="trajectories", Key=file.relative_to(VECTORS).as_posix(), Body=file.read_bytes())
    yield "s3://trajectories"
    server.stop()


def test_findings_in_s3_are_those_of_the_file(bucket: str) -> None:
    for file in (OTJ, GROWTH):
        found = check_file(f"{bucket}/{file.relative_to(VECTORS).as_posix()}", None)
        assert found.document()["conforms"], found.problem
    with open_mrec(f"{bucket}/{GROWTH.relative_to(VECTORS).as_posix()}") as there, open_mrec(GROWTH) as here:
        assert [repr(frame) for frame in there] == [repr(frame) for frame in here]
    for missing in ("no.otj", "no.mrec"):
        assert "no such file or folder" in check_file(f"{bucket}/{missing}", None).problem
