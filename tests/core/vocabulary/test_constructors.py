"""Messages and media in one expression."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from sabir.errors import BuilderError, MediaRefused, WrongWord
from sabir.vocabulary.constructors import as_messages, assistant, audio, document, image, system, user, video
from sabir.vocabulary.messages import Origin
from sabir.vocabulary.parts import MediaPart, ReasoningPart, TextPart
from sabir.vocabulary.reply import Reply

from tests.core.support import raises_line

PNG = b"\x89PNG\r\n\x1a\n rest"


def test_messages_differ_in_their_policy_and_keep_the_order_of_their_parts() -> None:
    """PJ-20, D-07: adapters derive the role from the policy, so that no hint is set."""
    messages = [user("a"), system("a"), assistant("a"), assistant("a", policy="planner")]
    picture = image("https://example.org/a.png")

    assert [message.policy for message in messages] == ["user", "system", "llm", "planner"]
    assert {(message.role_hint_for_llm, message.step_num) for message in messages} == {(None, None)}
    assert user("a", step_num=3).step_num == 3
    assert user("a").id != user("a").id
    parts = (TextPart(text="a"), picture, ReasoningPart(text="hm"), TextPart(text="c"))
    assert user("a", picture, ReasoningPart(text="hm"), "c").parts == parts


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ((), BuilderError, "a message of 'user' needs content"),
        (("a", b"x"), WrongWord, r"content\[1\] is of type bytes; .*sabir.image"),
        ((Path("a.png"),), WrongWord, r"content\[0\] is of type \w*Path; .*sabir.image"),
        ((["a"],), WrongWord, r"content\[0\] is of type list"),
        (({"type": "text", "text": "a"},), WrongWord, r"content\[0\] is a vendor's content block"),
        (("\udfff",), BuilderError, "text: contains a lone surrogate"),
    ],
)
def test_what_is_no_content_is_refused_in_one_line(
    content: tuple[Any, ...], error: type[Exception], words: str
) -> None:
    with raises_line(error, match=words):
        user(*content)


def test_a_url_is_taken_as_it_is() -> None:
    """UP-21: an http image URL is passed as a URL, never normalised or wrapped."""
    url = "https://Example.ORG:443/ä%20b.png?q=ü#x"

    assert image(url) == MediaPart(modality="image", url=url)
    assert document("provider-file:acme/file-1").url == "provider-file:acme/file-1"


def test_bytes_and_files_become_data_urls_of_their_own_type(tmp_path: Path) -> None:
    """PJ-15, PJ-17, D-02: no path is in a message; the type is the hint's, if it is a whole one, or the bytes'."""
    path = tmp_path / "sky.jpg"
    path.write_bytes(PNG)
    expected = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"

    assert image(PNG) == MediaPart(modality="image", url=expected)
    assert image(path) == MediaPart(modality="image", url=expected, name="sky.jpg")
    named = image(str(path), name="other", hint="the sky", id="1", mime="image/x-own")
    assert (named.name, named.prompt_hint, named.id, named.mime) == ("other", "the sky", "1", "image/x-own")
    assert named.url == expected.replace("image/png", "image/x-own")
    for make, data, mime in (
        (audio, b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"), (video, b"\0\0\0\x18ftypmp42", "video/mp4"),
        (document, b"%PDF-1.7", "application/pdf"),
    ):  # fmt: skip
        assert (made := make(data)).modality == make.__name__
        assert made.url.startswith(f"data:{mime};base64,")
    for hint in ("image/*", "photo", "", "a photo/graph"):
        assert image(PNG, mime=hint).url == expected
    assert audio(b"abcd", mime="audio/L16; codec=pcm").url == "data:audio/L16;codec=pcm;base64,YWJjZA=="


def test_media_that_cannot_be_read_or_told_is_refused_in_one_line(tmp_path: Path) -> None:
    large, page, pipe, empty = (tmp_path / name for name in ("large.png", "page.html", "pipe.png", "empty.png"))
    large.write_bytes(PNG)
    page.write_text("<html>")
    os.mkfifo(pipe)
    empty.touch()
    for source, words in [
        ("nowhere.png", "'nowhere.png' cannot be read: No such file or directory; pass a URL, a path or bytes"),
        (tmp_path, "cannot be read: it is not a regular file; pass a URL, a path or bytes"),
        ("/dev/zero", "'/dev/zero' cannot be read: it is not a regular file"), (pipe, "it is not a regular file"),
        (empty, r"empty\.png' is empty; pass a file or bytes with content"), (b"", "a value of 0 bytes is empty"),
        ("data:image/png;base64,", "is empty"), ("data:image/png;base64,%20%3d", "is empty"),
        ("data:image/png;base64,====", "is empty"), ("https://", "has no host"),
        ("https://example.org:99999/a.png", "is not a URL: .*invalid port number"),
        ("https://a b.org/a.png", "percent-encode or remove it"),
        ("http://1.2.3.4.5/a.png", "is not a URL: .*invalid IPv4 address"), ("a\0b", "cannot be read"),
        (b"??", "type of a value of 2 bytes is unknown; pass mime=, for example 'image/png'"),
        (page, "text/html, which a media part cannot contain"), ("javascript:alert(1)", "cannot be read"),
        (None, "the image is of type NoneType; pass a URL, a path or bytes"),
    ]:  # fmt: skip
        with raises_line(MediaRefused, match=words):
            image(source)  # type: ignore[arg-type]
    for given, name in ((large, r"large\.png' "), (PNG, "")):
        with pytest.raises(MediaRefused, match=f"{name}has more bytes than cap=10 allows; upload it, or pass a larg"):
            image(given, cap=10)


def test_of_a_file_that_grows_one_byte_beyond_the_cap_is_read(tmp_path: Path) -> None:
    """What a file's size was said to be is no bound on what it gives: /proc/self/maps says 0 bytes."""
    taken = document("/proc/self/maps", mime="text/plain", cap=100_000_000)

    assert taken.url.startswith("data:text/plain;base64,")
    with pytest.raises(MediaRefused, match="more bytes than cap=10"):
        document("/proc/self/maps", mime="text/plain", cap=10)


def test_a_call_takes_text_one_message_or_several() -> None:
    one, two = user("a"), assistant("b")

    for given, found in ((one, [one]), (both := [one, two], both), ((one,), [one]), ([], [])):
        assert as_messages(given) == found
        assert as_messages(given) is not given
    assert [(message.policy, message.text) for message in as_messages("hi")] == [("user", "hi")]


REPLY = Reply(messages=(), finish_reason="stop", origin=Origin(provider="p", dialect="p.d"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([{"role": "user", "content": "a"}], r"messages\[0\] is a role dictionary.*sabir\.user.*decode_history"),
        ({"role": "user", "content": "a"}, "messages is a role dictionary"),
        ([user("a"), "b"], r"messages\[1\] is a str among messages; write sabir.user\('b'\)"),
        ([user("a"), 3], r"messages\[1\] is of type int"),
        (REPLY, "messages is a Reply; append reply.messages"),
        ([REPLY], r"messages\[0\] is a Reply"),
        (b"a", "messages is of type bytes"),
        (3, "messages is of type int"),
        (None, "messages is of type NoneType"),
    ],
)
def test_what_is_no_message_is_named_with_its_index(given: Any, words: str) -> None:
    """WrongWord is a TypeError: the mistake is in the program."""
    with raises_line(WrongWord, match=words) as caught:
        as_messages(given)

    assert isinstance(caught.value, TypeError)
