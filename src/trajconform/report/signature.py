"""DSSE envelopes: a statement signed with an Ed25519 or ECDSA key. Needs the extra ``sign``.

Keys are PEM files, as ``openssl genpkey -algorithm ed25519`` writes them. What is signed is the bytes of the statement
together with their type, so nothing can be read into a signature that was not meant.
"""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import Any

from trajconform.model.errors import TrajconformError

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PASSWORD = "TRAJCONFORM_KEY_PASSWORD"
_MOST_KEY_BYTES = 1 << 16
_INSTALL = "signatures need a library that is not there: pip install 'trajconform[sign]'"


def require_library() -> None:
    """`TrajconformError` with the command that installs it, where the library is not there."""
    try:
        import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401
        import securesystemslib.dsse  # noqa: F401
    except ImportError:
        raise TrajconformError(_INSTALL) from None


def sign(payload: bytes, key: Path) -> dict[str, Any]:
    """The envelope around a statement, signed with a private key. `TrajconformError` where the key is of no use."""
    require_library()
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]

    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    private = _private_key(key)
    try:
        signer = CryptoSigner(private)
    except ValueError as error:  # a curve that the library does not know
        raise TrajconformError(f"{key}: {error}; use an Ed25519 key") from None
    envelope.sign(signer)
    out: dict[str, Any] = envelope.to_dict()
    return out


def opened(envelope: Any) -> bytes:
    """The payload of an envelope whose form is exactly right; the signature is not looked at.

    `TrajconformError` for a missing, further or ill-formed member, for more than one signature, for another payload
    type, and for base64 that has a second spelling.
    """
    if not isinstance(envelope, dict) or set(envelope) != {"payload", "payloadType", "signatures"}:
        raise TrajconformError("an envelope has exactly the members payload, payloadType and signatures")
    if envelope["payloadType"] != PAYLOAD_TYPE:
        raise TrajconformError(f"the envelope holds no statement: its payloadType is not {PAYLOAD_TYPE}")
    signatures = envelope["signatures"]
    if not isinstance(signatures, list) or len(signatures) != 1:
        raise TrajconformError("an envelope of this kit has one signature")
    signature = signatures[0]
    if not isinstance(signature, dict) or set(signature) != {"keyid", "sig"} or not isinstance(signature["keyid"], str):
        raise TrajconformError("a signature has exactly the members keyid and sig")
    _decoded(signature["sig"], "sig")
    return _decoded(envelope["payload"], "payload")


def verified_by(envelope: Any, key: Path) -> str:
    """The id of the public key that has signed this envelope. `TrajconformError` where it has not."""
    require_library()
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

    opened(envelope)
    loaded = _public_key(key)
    try:
        public = SSlibKey.from_crypto(loaded)
    except ValueError as error:
        raise TrajconformError(f"{key}: {error}; use an Ed25519 key") from None
    signature = dict(envelope["signatures"][0])
    if signature["keyid"] != public.keyid:
        raise TrajconformError(f"the signature names another key than {key}: {signature['keyid'][:64]!r}")
    try:
        Envelope.from_dict({**envelope, "signatures": [signature]}).verify([public], 1)
    except (VerificationError, ValueError, KeyError):
        raise TrajconformError(
            f"the signature is not that of {key} over this statement: the certificate was changed, or signed by another"
        ) from None
    return str(public.keyid)


def _decoded(text: Any, what: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        data = b""
    if not data or base64.b64encode(data).decode() != text:
        raise TrajconformError(f"the {what} of the envelope is not base64 in its one spelling")
    return data


def _pem(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_KEY_BYTES + 1)
    except OSError as error:
        raise TrajconformError(f"cannot read the key {path}: {error.strerror or error}") from None
    if len(data) > _MOST_KEY_BYTES:
        raise TrajconformError(f"{path} is too large for a key")
    return data


def _private_key(path: Path) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    password = os.environ.get(PASSWORD)
    data = _pem(path)
    try:
        key = load_pem_private_key(data, None if not password or b"ENCRYPTED" not in data else password.encode())
    except TypeError:
        raise TrajconformError(f"the key {path} is encrypted; put its password into {PASSWORD}") from None
    except (ValueError, UnsupportedAlgorithm):
        why = "or the password is wrong" if password and b"ENCRYPTED" in data else "such as openssl genpkey writes"
        raise TrajconformError(f"{path} holds no private key in PEM, {why}") from None
    if not isinstance(key, (Ed25519PrivateKey, EllipticCurvePrivateKey)):
        raise TrajconformError(f"{path}: use an Ed25519 or ECDSA key: openssl genpkey -algorithm ed25519 -out key.pem")
    return key


def _public_key(path: Path) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    data = _pem(path)
    if b"PRIVATE KEY" in data:
        raise TrajconformError(f"{path} is a private key; verifying takes the public one: openssl pkey -pubout")
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise TrajconformError(f"{path} holds no public key in PEM, such as openssl pkey -pubout writes") from None
    if not isinstance(key, (Ed25519PublicKey, EllipticCurvePublicKey)):
        raise TrajconformError(f"{path} is no Ed25519 or ECDSA key")
    return key
