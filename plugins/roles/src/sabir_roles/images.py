"""Images of instructions: URLs, or base64 texts, which become data URLs in core messages."""

import base64
import binascii
import re
from collections.abc import Sequence

from sabir.authoring import DataURL, MediaURL, describe_kind
from sabir.errors import MediaRefused

from sabir_roles.errors import RoleError

_BASE64_LIKE = re.compile(r"[A-Za-z0-9+/_=\s-]+")

_STANDARD = str.maketrans("-_", "+/")
"""Translates the URL-safe alphabet of base64 to the standard alphabet."""


def check_images(images: object) -> list[str]:
    """Return one or several images as a list. Raises RoleError, which names the first invalid image.

    A base64 text is only checked for its characters here; `image_url` decodes it.
    """
    listed = [images] if isinstance(images, str) else images
    if not isinstance(listed, Sequence) or isinstance(listed, bytes):
        raise RoleError(f"images are {describe_kind(images)}; pass a list of URLs or base64 texts")
    for index, image in enumerate(listed):
        if not isinstance(image, str) or not image:
            description = "an empty text" if image == "" else describe_kind(image)
            raise RoleError(f"images[{index}] is {description}; pass an http(s) or data URL, or base64")
        if MediaURL(image).has_known_scheme:
            try:
                MediaURL(image).check()
            except MediaRefused as error:
                raise RoleError(f"images[{index}]: {error}") from None
        elif not _BASE64_LIKE.fullmatch(image):
            raise RoleError(f"images[{index}] is {MediaURL(image).shown}; pass an http(s) or data URL, or base64")
    return list(listed)


def image_url(image: str) -> str:
    """Return a URL unchanged, and base64 as a data URL with the type that the bytes show, or else image/png. Raises
    RoleError for a text that is neither a URL nor base64.
    """
    if MediaURL(image).has_known_scheme:
        return image
    try:
        data = base64.b64decode(
            "".join(image.split()), altchars=b"-_" if re.search("[-_]", image) else None, validate=True
        )
    except (binascii.Error, ValueError) as error:
        raise RoleError(f"the image {MediaURL(image).shown} is neither a URL nor base64: {error}") from None
    return DataURL.from_bytes(data, otherwise="image/png")
