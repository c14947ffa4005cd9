"""Media as OpenAI's wires take them; which they take at all is in the dialects' tables.

data URL ──▶ base64 data URL (images, files)      raw base64 and a format word (audio)
provider-file URL ──▶ file id
"""

from sabir import MediaPart
from sabir.authoring import data_url_base64, form_of, read_data_url, split_provider_file

IMAGES = r"image/(png|jpe?g|gif|webp)"
"""MIME types of the images that the models read. https://developers.openai.com/api/docs/guides/images-vision"""
SOUNDS = r"audio/(wav|x-wav|wave|vnd\.wave|mpeg|mp3|mpeg3|x-mpeg-3)"
"""MIME types of the two sound formats, wav and mp3. https://developers.openai.com/api/docs/guides/audio"""

_EXTENSIONS = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/csv": "csv",
    "application/json": "json",
}


def base64_url(url: str) -> str:
    """A data URL whose payload is base64: as given where it is, converted where it is percent-encoded."""
    header = read_data_url(url)
    if header.is_base64:
        return url
    mime, payload = data_url_base64(url)
    return f"data:{mime}{header.parameters};base64,{payload}"


def sound(url: str) -> dict[str, str]:
    """A data URL's raw base64 and its format word, `wav` or `mp3`."""
    mime, payload = data_url_base64(url)
    return {"data": payload, "format": "wav" if "wav" in mime else "mp3"}


def file_id(url: str) -> str:
    """The id in a provider-file URL."""
    return split_provider_file(url)[1]


def file_name(part: MediaPart) -> str:
    """A document's name; one after its type where it has none, for the wire wants a name with the data."""
    if part.name:
        return part.name
    mime = read_data_url(part.url).mime if form_of(part.url) == "data" else part.mime or ""
    return f"document.{_EXTENSIONS.get(mime, 'pdf')}"
