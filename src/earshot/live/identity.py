"""Identity: a node's own key, and the certificate that an owner gives it.

Beside the network's key, which keeps strangers out, a node may have an Ed25519 key of its own. It signs its events
and its hellos, so that no relay can forge or alter them. Others learn which key a name has from a trust file, or
from a certificate that is signed by an owner they trust: see `signatures.py`.

An identity file holds words and values, one pair per line: `name`, `private` and perhaps `certificate`.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from earshot.errors import UsageError
from earshot.events import Event
from earshot.live.datagrams import MAX_NAME, Frame
from earshot.live.private_files import make_private, read_text, warn_if_readable

SIGNATURE_BYTES = 64
PUBLIC_KEY_BYTES = 32
_KEY_PREFIX = "ed25519:"
_encoder = msgspec.msgpack.Encoder()
_event_decoder = msgspec.msgpack.Decoder(Event)


def key_text(key: bytes) -> str:
    """A public key as text, as in `ed25519:AbC...`."""
    return _KEY_PREFIX + urlsafe_b64encode(key).decode().rstrip("=")


def parse_key(text: str) -> bytes:
    """The public key in a text such as `ed25519:AbC...`."""
    key = _from_base64(text.removeprefix(_KEY_PREFIX)) if text.startswith(_KEY_PREFIX) else b""
    if len(key) != PUBLIC_KEY_BYTES:
        raise UsageError(
            f"{text[:80]!r} is not a public key; `earshot identity show FILE` prints one: {_KEY_PREFIX}..."
        )
    return key


def parse_named_key(text: str) -> tuple[str, bytes]:
    """The name and the key in `NAME=ed25519:...`."""
    name, sign, key = text.rpartition("=")
    if not sign:
        raise UsageError(f"write NAME=KEY, as in amb-7=ed25519:..., got {text[:80]!r}")
    return checked_name(name), parse_key(key)


def checked_name(name: str) -> str:
    """The name, if it is valid for an identity; otherwise UsageError."""
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name.split() != [name] or name.startswith("#"):
        raise UsageError(f"an identity's name has 1 to {MAX_NAME} characters without spaces, got {name[:80]!r}")
    return name


def _from_base64(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""


def is_signed_by(key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the holder of this key signed the message."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


# What is signed. The first bytes differ, so that a signature of one kind is never valid for another kind.


def event_message(event: Event) -> bytes:
    """What the source of an event signs: the whole event except the signature."""
    return b"earshot event 1\0" + _encoder.encode(
        (
            event.type,
            event.content,
            event.id,
            event.source,
            event.position,
            event.velocity,
            event.time,
            event.area,
            event.lifespan_s,
            event.priority,
        )
    )


def hello_message(frame: Frame) -> bytes:
    """What the sender of a hello signs."""
    return b"earshot hello 1\0" + _encoder.encode(
        (frame.sender, frame.life, frame.sequence, frame.time, frame.plane, frame.position)
    )


class Certificate(msgspec.Struct, frozen=True, array_like=True):
    """An owner's statement that a key belongs to a name, until a given time."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
    key: Annotated[bytes, msgspec.Meta(min_length=PUBLIC_KEY_BYTES, max_length=PUBLIC_KEY_BYTES)]
    until: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    "Seconds since the epoch."
    signature: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)] = b""

    def message(self) -> bytes:
        """What the owner signs."""
        return b"earshot certificate 1\0" + _encoder.encode((self.name, self.key, self.until))

    def encoded(self) -> bytes:
        return _encoder.encode(self)


_certificate_decoder = msgspec.msgpack.Decoder(Certificate)


def decode_certificate(data: bytes) -> Certificate | None:
    """The certificate in these bytes; None if there is none."""
    try:
        return _certificate_decoder.decode(data)
    except (msgspec.DecodeError, ValueError):
        return None


@dataclass(frozen=True)
class Identity:
    """A name, its private key, and its certificate if it has one."""

    name: str
    private_key: Ed25519PrivateKey
    certificate: bytes = b""

    @property
    def public_key(self) -> bytes:
        return self.private_key.public_key().public_bytes_raw()

    def sign_event(self, event: Event) -> Event:
        """The event as receivers will decode it, with its signature."""
        decoded = _event_decoder.decode(_encoder.encode(event))
        signature = self.private_key.sign(event_message(decoded)) + self.certificate
        msgspec.structs.force_setattr(decoded, "signature", signature)
        return decoded

    def sign_hello(self, frame: Frame) -> Frame:
        """The hello with its signature."""
        return msgspec.structs.replace(frame, signature=self.private_key.sign(hello_message(frame)) + self.certificate)

    def certify(self, name: str, key: bytes, until: int) -> Certificate:
        """A certificate for a node, signed by this identity, which is an owner's."""
        plain = Certificate(checked_name(name), key, until)
        return msgspec.structs.replace(plain, signature=self.private_key.sign(plain.message()))


def new_identity(name: str, path: str | Path) -> Identity:
    """Make a key and write it to a new file that only its owner can read."""
    private_key = Ed25519PrivateKey.generate()
    text = urlsafe_b64encode(private_key.private_bytes_raw()).decode()
    make_private(path, f"name {checked_name(name)}\nprivate {text}\n".encode())
    return Identity(name, private_key)


def certificate_line(certificate: Certificate) -> str:
    """The certificate as a line of an identity file."""
    return f"certificate {urlsafe_b64encode(certificate.encoded()).decode()}"


def read_identity(path: str | Path) -> Identity:
    """The identity in a file; warns if others can read it."""
    lines = read_text(path, "the identity").splitlines()
    warn_if_readable(path, "the identity")
    words = dict(line.split(None, 1) for line in lines if len(line.split(None, 1)) == 2)
    private = _from_base64(words.get("private", "").strip())
    if len(private) != 32 or "name" not in words:
        raise UsageError(f"{path} holds no identity; make one with: earshot identity new NAME --file FILE")
    name = checked_name(words["name"].strip())
    identity = Identity(name, Ed25519PrivateKey.from_private_bytes(private))
    if "certificate" not in words:
        return identity
    data = _from_base64(words["certificate"].strip())
    certificate = decode_certificate(data)
    if certificate is None or (certificate.name, certificate.key) != (name, identity.public_key):
        raise UsageError(
            f"the certificate in {path} is for another name or key; ask the owner for one with: "
            f"earshot identity certify OWNER_FILE {name}={key_text(identity.public_key)}"
        )
    return Identity(name, identity.private_key, data)
