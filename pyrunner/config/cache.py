"""`[runners.cache]` and its adapters (facts/config-toml.md 13)."""

from __future__ import annotations

from typing import Annotated

from pyrunner.config.keys import Key, camel_case
from pyrunner.config.table import Table, fresh


class S3Config(Table, rename=camel_case):
    """`[runners.cache.s3]`."""

    server_address: Annotated[str, Key("host[:port]; empty = AWS")] = ""
    access_key: Annotated[str, Key("access key", secret=True)] = ""
    secret_key: Annotated[str, Key("secret key", secret=True)] = ""
    session_token: Annotated[str, Key("session token", secret=True)] = ""
    bucket_name: Annotated[str, Key("bucket")] = ""
    bucket_location: Annotated[str, Key("region")] = ""
    insecure: Annotated[bool, Key("plain http")] = False
    authentication_type: Annotated[
        str, Key("access-key or iam; empty = by the other keys", flag="cache-s3-authentication_type")
    ] = ""
    server_side_encryption: Annotated[str, Key("S3, KMS or DSSE-KMS")] = ""
    server_side_encryption_key_id: Annotated[str, Key("KMS key id, alias or ARN")] = ""
    dual_stack: Annotated[bool | None, Key("dual-stack endpoints; default true")] = None
    path_style: Annotated[bool | None, Key("path-style requests; absent = detect")] = None
    accelerate: Annotated[bool, Key("transfer acceleration")] = False
    role_arn: Annotated[str, Key("role that the helper assumes")] = ""
    upload_role_arn: Annotated[str, Key("role for uploads")] = ""
    assume_role_max_concurrency: Annotated[int, Key("role assumptions at once; 0 = 5, -1 = unlimited", always=True)] = 0
    disable_assume_role_credentials_caching: Annotated[bool, Key("do not keep assumed credentials")] = False


class GcsConfig(Table, rename=camel_case):
    """`[runners.cache.gcs]`."""

    access_id: Annotated[str, Key("service account")] = ""
    private_key: Annotated[str, Key("PEM key", secret=True)] = ""
    credentials_file: Annotated[str, Key("JSON key file", env="GOOGLE_APPLICATION_CREDENTIALS")] = ""
    bucket_name: Annotated[str, Key("bucket")] = ""
    universe_domain: Annotated[str, Key("custom universe")] = ""


class AzureConfig(Table, rename=camel_case):
    """`[runners.cache.azure]`."""

    account_name: Annotated[str, Key("storage account")] = ""
    account_key: Annotated[str, Key("key; empty = managed or workload identity", secret=True)] = ""
    container_name: Annotated[str, Key("container")] = ""
    storage_domain: Annotated[str, Key("default blob.core.windows.net")] = ""


#: Spellings that follow no rule.
_NAMES = {"s3": "s3", "gcs": "gcs", "azure": "azure"}


def _cache_name(attribute: str) -> str:
    return _NAMES.get(attribute) or camel_case(attribute)


class CacheConfig(Table, rename=_cache_name):
    """`[runners.cache]`: where caches are kept beyond this machine."""

    type: Annotated[str, Key("kind of store; empty = local only", choices=("s3", "gcs", "azure"))] = ""
    path: Annotated[str, Key("object name prefix")] = ""
    shared: Annotated[bool, Key("leave the runner token out of the object path")] = False
    max_uploaded_archive_size: Annotated[
        int,
        Key(
            "bytes; 0 = no limit",
            always=True,
            flag="cache-max_uploaded_archive_size",
            env="CACHE_MAXIMUM_UPLOADED_ARCHIVE_SIZE",
        ),
    ] = 0
    s3: Annotated[S3Config, Key("S3", prefix="s3", always=True)] = fresh(default_factory=S3Config)
    gcs: Annotated[GcsConfig, Key("Google Cloud Storage", prefix="gcs", always=True)] = fresh(default_factory=GcsConfig)
    azure: Annotated[AzureConfig, Key("Azure Blob Storage", prefix="azure", always=True)] = fresh(
        default_factory=AzureConfig
    )
