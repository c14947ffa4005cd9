"""Leaks: the search of a cassette for secrets and private data, such as keys, people, machines and random texts.

path in the YAML, then in the JSON of a body        kind             shown
interactions[0].response.body.string ▸ error.text   API key          'sk-a' and 40 more characters

A `Leak` never contains the complete text. The search covers known forms of keys, and what the detectors of
detect-secrets except LEFT_OUT find (`scan_for_secrets`), in all places: also over several events of a stream, in
compressed bodies, UTF-16 and base64. It looks for random texts everywhere except in identifiers, signatures and media.
"""

import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from sabir_testing import reading
from sabir_testing.reading import JSONPath, base64_runs, format_path
from sabir_testing.scrubbing import HOST, PARAMETER_IN_URL, PLACEHOLDER, TELLING_PARAMETER, USER_IN_URL, Allowed, Leak
from sabir_testing.scrubbing.spellings import is_telling

_KEY_START = r"(?<![A-Za-z0-9_-])"
"""The beginning of a key, which is not within a longer word."""


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


def _is_credential(text: str) -> bool:
    """Return whether a match is a token, which has a digit, unlike the words "Bearer authentication"."""
    return PLACEHOLDER not in text and _has_digit(text)


def _is_person(text: str) -> bool:
    """Return whether an e-mail address may be a person's. Domains reserved for examples (RFC 2606) are not."""
    name, _, domain = text.lower().rpartition("@")
    return name != PLACEHOLDER.lower() and not re.search(
        r"(?:^|\.)(?:example(?:\.com|\.net|\.org)?|invalid|test|localhost)$", domain
    )


_PRIVATE = [
    *map(ipaddress.ip_network, ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16")),
    *map(ipaddress.ip_network, ("::1/128", "fc00::/7", "fe80::/10")),
]


def _is_private(match: str) -> bool:
    """Return whether a match is an address of this machine or a private network. 0.0.0.0 counts only with a port."""
    text = re.sub(r"^\[|\](?::\d+)?$", "", match)
    host, _, port = text.partition(":") if text.count(":") == 1 else (text, "", "")
    if host == "0.0.0.0":
        return bool(port)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in _PRIVATE)


SHAPES: Sequence[tuple[str, str, Callable[[str], bool]]] = (
    ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{0,80}", bool),
    ("bearer token", r"(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}", _is_credential),
    ("JSON web token", _KEY_START + r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*", bool),
    ("AWS key", _KEY_START + r"(?:AKIA|ASIA|ABSK)[A-Z0-9]{16,}", bool),
    ("Google key", _KEY_START + r"(?:AIza[\w-]{20,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{10,})", bool),
    ("GitHub token", _KEY_START + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})", bool),
    ("Slack token", _KEY_START + r"xox[abeoprs]-[A-Za-z0-9-]{10,}", bool),
    ("API key", _KEY_START + r"(?:[sr]k-|[sr]k_(?:live|test)_|gsk_|xai-|pplx-|nvapi-|r8_|hf_)[\w-]{16,}", _has_digit),
    ("organisation or project", _KEY_START + r"(?:org-|proj_|wrkspc_)[A-Za-z0-9]{16,}", _has_digit),
    ("e-mail address", r"(?<![\w.+-])[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b", _is_person),
    ("private address", r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?![\w.]*\d)", _is_private),
    ("private address", r"\[[0-9A-Fa-f:]*::?[0-9A-Fa-f:]*\](?::\d{1,5})?", _is_private),
    ("private address", r"(?i)(?<![\w.-])localhost:\d{2,5}\b", bool),
    ("home folder", r"(?<![\w.])/(?:home|Users|root)/[\w.-]+|[A-Za-z]:\\+Users\\+[\w.-]+", bool),
)
"""Kind, pattern, and a function that returns whether a match counts."""
_COMPILED = [(kind, re.compile(pattern), counts) for kind, pattern, counts in SHAPES]

RANDOM = "random text"
_RANDOM = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{32,256}(?![A-Za-z0-9+/=_-])")
"""Longer texts are media or encrypted, not keys."""
_SHORTEST_IN_BINARY = 16
"""The shortest finding in binary data, in characters. Shorter matches and random texts occur there by chance."""
_RANDOM_BITS = 4.2
"""Bits of entropy for each character. 32 random letters and digits have about 4.6, names of that length less than 4."""
_KINDS = ("[a-z]", "[A-Z]", "[0-9]")
_RANDOM_FIELD = re.compile(
    r"(?i)(?:.*[-_])?encrypted.*|.*(?:signature|fingerprint|obfuscation|data|id|ids|b64_?json|hash|digest|etag)"
)
"""Fields with harmless random texts: identifiers, signatures, encrypted reasoning, media."""
_ADDRESS = re.compile(r"data:[\w./+-]*(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_-]*|https?://[^\s?#\"'<>]*")
"""Data URLs, and web URLs up to their query."""

_URL = re.compile(r"\w+://[^\s\"'<>]+")
_SHORTEST_BASE64 = 8
"""The shortest base64 content that is searched, in bytes."""
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
"""An AWS secret key. It counts only next to an AWS key id, or in a field with such a name."""
_AWS_FIELD = re.compile(r"(?i).*secret_?(?:access_?)?key|.*secret")
_CREDENTIAL_NAME = re.compile(r"(?i)(?:.*[-_])?(?:authorization|cookie|(?:api|goog)-?_?key|token|secret)")


@dataclass(frozen=True)
class _Finding:
    """A finding with its complete text."""

    place: str
    kind: str
    text: str


def leaks_in(document: Any, file: Path, allowed: Sequence[Allowed] = ()) -> list[Leak]:
    """Return the secrets and private data in a cassette's YAML document, in its order, without those in `allowed`. A
    text that occurs several times is one finding for each kind.
    """
    finds: dict[tuple[str, str], _Finding] = {}
    for each in _all_findings(document):
        if not any(exception.covers(each.kind, each.text) for exception in allowed):
            finds.setdefault((each.kind, each.text), each)
    return [Leak(file, each.place, each.kind, _shorten_secret(each.text)) for each in finds.values()]


def _all_findings(document: Any) -> Iterator[_Finding]:
    for path, text, is_text in _scalars(document):
        for find in _find_in_scalar(path, text):
            if is_text or (find.kind != RANDOM and len(find.text) >= _SHORTEST_IN_BINARY):
                yield find


def _find_in_scalar(path: JSONPath, text: str) -> Iterator[_Finding]:
    if path[-1] == "uri":
        yield from _find_in_url(format_path(path), text)
    elif len(path) > 1 and "headers" in path[:-1]:
        yield from _find_in_header(path, text)
    elif path[-1] == "body" or path[-2:] == ("body", "string"):
        yield from _find_in_body(format_path(path), text)
    else:
        yield from _find_in_text(format_path(path), text, str(path[-1]))


def _scalars(document: Any) -> Iterator[tuple[JSONPath, str, bool]]:
    """Yield every text of the YAML document with its path, and whether it is a text or decoded binary data."""
    for leaf in reading.walk(document):
        value: object = leaf.value
        if isinstance(value, str) and "\0" in value:
            value = value.encode()
        if isinstance(value, bytes):
            yield from ((leaf.path, *each) for each in _decodings(value))
        elif value is not None and not leaf.is_name:
            yield leaf.path, str(value), True


def _decodings(body: bytes) -> list[tuple[str, bool]]:
    """Return the decodings of a body to search: the detected one (True) and, unless that is UTF-8, Latin-1 (False)."""
    body = reading.decompress_detected(body)
    read = reading.as_text(body)
    latin = [] if read is not None and read.encoding == "utf-8" else [(body.decode("latin-1"), False)]
    return latin if read is None else [(read.text, True), *latin]


def _find_in_url(place: str, url: str) -> Iterator[_Finding]:
    host = re.match(r"\w+://([^/?#]*)", url)
    if host is not None and host[1] != HOST:
        yield _Finding(place, "host", host[1])
    yield from _find_shapes(place, url)


def _find_in_header(path: JSONPath, text: str) -> Iterator[_Finding]:
    name = _field_name(path)
    if _CREDENTIAL_NAME.fullmatch(name) and text != PLACEHOLDER:
        yield _Finding(format_path(path), f"header {name!r}", text)
    else:
        yield from _find_in_text(format_path(path), text, name)


def _find_in_body(place: str, text: str) -> Iterator[_Finding]:
    finds = list(_find_in_parts(place, text))
    yield from finds
    # The scanner gets the complete body, because it also looks at the names of fields.
    yield from _without_known(_find_by_scanner(place, text), finds)


def _find_in_parts(place: str, text: str) -> Iterator[_Finding]:
    parsed = reading.documents(text)
    for number, document in enumerate(parsed):
        where = f"{place} ▸ " + (f"document {number} ▸ " if len(parsed) > 1 else "")
        for inner, member in reading.texts_with_paths(document.value):
            yield from _find_in_text(where + format_path(inner), member, _field_name(inner))
    yield from _find_in_text(place, "\n".join(reading.texts_between(text, parsed)), "")
    for fragments in reading.group_fragments([document.value for document in parsed]):
        if len(fragments) > 1:
            where = f"{place} ▸ documents {fragments[0].document} to {fragments[-1].document} together ▸ "
            joined = "".join(fragment.text for fragment in fragments)
            for find in _find_shapes(where + format_path(fragments[0].path), joined):
                # A finding within one document was already reported, and here only continues in the next document.
                if not any(known.text in find.text for each in fragments for known in _find_shapes("", each.text)):
                    yield find


def _find_in_text(place: str, text: str, field: str) -> Iterator[_Finding]:
    finds = list(_find_shapes(place, text))
    if _AWS_FIELD.fullmatch(field) or any(find.kind == "AWS key" for find in finds):
        finds += [_Finding(place, "AWS secret key", match.group()) for match in _AWS_SECRET.finditer(text)]
    yield from finds
    yield from _find_in_base64(place, text)
    if _RANDOM_FIELD.fullmatch(field):
        return
    for match in _RANDOM.finditer(_ADDRESS.sub("", text)):
        is_known = any(match.group() in find.text for find in finds)
        if _is_random(match.group()) and not is_known and not _is_text_in_base64(match.group()):
            yield _Finding(place, RANDOM, match.group())


def _find_in_base64(place: str, text: str) -> Iterator[_Finding]:
    """Yield the findings in base64 whose content is text or compressed text."""
    for run in base64_runs(text):
        inside = reading.decompress_detected(run.content)
        read = reading.as_text(inside)
        if len(run.content) >= _SHORTEST_BASE64 and read is not None:
            yield from _find_shapes(f"{place} ▸ base64", read.text)
            yield from _find_in_base64(f"{place} ▸ base64", read.text)


def _find_shapes(place: str, text: str) -> Iterator[_Finding]:
    finds = [
        _Finding(place, kind, match.group())
        for kind, pattern, counts in _COMPILED
        for match in pattern.finditer(USER_IN_URL.sub("", text))
        if counts(match.group())
    ]
    finds += [
        _Finding(place, "password in a URL", match[2]) for match in USER_IN_URL.finditer(text) if _is_secret(match[2])
    ]
    for url in _URL.findall(text):
        for name, value in PARAMETER_IN_URL.findall(url):
            if TELLING_PARAMETER.search(name) and _is_secret(value):
                finds.append(_Finding(place, f"parameter {name!r}", value))
    yield from finds
    yield from _without_known(_find_by_scanner(place, text), finds)


def _find_by_scanner(place: str, text: str) -> Iterator[_Finding]:
    for kind, secret in scan_for_secrets(text):
        if _is_secret(secret):
            yield _Finding(place, kind, secret)


def _without_known(findings: Iterator[_Finding], known: Sequence[_Finding]) -> Iterator[_Finding]:
    """Yield the findings whose text is not known as another kind of finding."""
    for find in findings:
        if not any(find.text in each.text or (each.text in find.text and is_telling(each.text)) for each in known):
            yield find


def _is_secret(text: str) -> bool:
    return PLACEHOLDER not in text and HOST not in text


def _is_text_in_base64(text: str) -> bool:
    """Return whether a text is base64 of plain text. Its content is searched separately."""
    return any(reading.is_plain(run.content) for run in base64_runs(text))


def _is_random(text: str) -> bool:
    """Return whether a text looks random: a long run of upper-case and lower-case letters and digits, or of hexadecimal
    digits.
    """
    run = max(re.split(r"[-_/+=]", text), key=len)
    if re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", run):
        return _entropy(run) > 3 and _has_digit(run)
    run = text if _AWS_SECRET.fullmatch(text) else run
    return len(run) >= 16 and all(re.search(kind, run) for kind in _KINDS) and _entropy(text) > _RANDOM_BITS


def _entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _field_name(path: JSONPath) -> str:
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _shorten_secret(text: str) -> str:
    length = min(4, len(text) // 4)
    return f"{text[:length]!r} and {len(text) - length} more characters"


LEFT_OUT = {"IPPublicDetector", "Base64HighEntropyString", "HexHighEntropyString"}
"""Detectors of detect-secrets that are not used. Every answer contains public addresses and random texts."""


@cache
def detectors() -> tuple[str, ...]:
    """Return the names of the detectors of detect-secrets that are used."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    kinds: Mapping[str, type] = get_mapping_from_secret_type_to_class()
    return tuple(sorted({kind.__name__ for kind in kinds.values()} - LEFT_OUT))


@lru_cache(maxsize=4096)
def scan_for_secrets(text: str) -> tuple[tuple[str, str], ...]:
    """Return the findings of detect-secrets in a text: the kind and the secret."""
    from detect_secrets.core.scan import (
        scan_line,
    )  # the import takes half a second, and only the search for leaks needs it
    from detect_secrets.settings import transient_settings

    with transient_settings({"plugins_used": [{"name": name} for name in detectors()]}):
        secrets = {each for line in text.splitlines() for each in scan_line(line)}
    return tuple(sorted((each.type, each.secret_value or "") for each in secrets))
