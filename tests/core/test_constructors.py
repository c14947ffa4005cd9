"""Messages and media in one expression."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from sabir.errors import BuilderError, MediaRefused, Misnamed
from sabir.vocabulary.constructors import as_messages, assistant, audio, document, image, system, user, video
from sabir.vocabulary.messages import Message, Origin
from sabir.vocabulary.parts import MediaPart, ReasoningPart, TextPart
from sabir.vocabulary.reply import Reply

PNG = b"\x89PNG\r\n\x1a\n rest"


def test_the_three_differ_in_their_policy_alone() -> None:
    """D-07: adapters derive the role from the policy, so that no hint is set."""
    messages = [user("a"), system("a"), assistant("a"), assistant("a", policy="planner")]

    assert [message.policy for message in messages] == ["user", "system", "llm", "planner"]
    assert {message.role_hint_for_llm for message in messages} == {None}
    assert {message.step_num for message in messages} == {None}
    assert user("a", step_num=3).step_num == 3
    assert user("a").id != user("a").id


def test_strings_and_parts_stand_in_their_order() -> None:
    """PJ-20."""
    picture = image("https://example.org/a.png")
    message = user("a", picture, TextPart(text="b"), "c")

    assert message.parts == (TextPart(text="a"), picture, TextPart(text="b"), TextPart(text="c"))
    assert assistant(ReasoningPart(text="hm"), "a").parts[0] == ReasoningPart(text="hm")


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ((), BuilderError, "a message of 'user' needs content"),
        (("a", b"x"), Misnamed, r"content\[1\] is of type bytes; .*sabir.image"),
        ((Path("a.png"),), Misnamed, r"content\[0\] is of type \w*Path; .*sabir.image"),
        ((["a"],), Misnamed, r"content\[0\] is of type list"),
        (({"type": "text", "text": "a"},), Misnamed, r"content\[0\] is a vendor's content block"),
        (("\udfff",), BuilderError, "text: holds a lone surrogate"),
    ],
)
def test_what_is_no_content_is_refused_in_one_line(
    content: tuple[Any, ...], error: type[Exception], words: str
) -> None:
    """The error names the place and the remedy."""
    with pytest.raises(error, match=words) as caught:
        user(*content)

    assert "\n" not in str(caught.value)


def test_a_url_is_taken_as_it_is() -> None:
    """UP-21: an http image URL is passed as a URL, never normalised or wrapped."""
    url = "https://Example.ORG:443/ä%20b.png?q=ü#x"

    assert image(url) == MediaPart(modality="image", url=url)
    assert document("provider-file:acme/file-1").url == "provider-file:acme/file-1"


def test_bytes_and_files_become_data_urls_of_their_own_type(tmp_path: Path) -> None:
    """D-02: there is no path in a message; the type is told from the first bytes, the name from the path."""
    path = tmp_path / "sky.jpg"
    path.write_bytes(PNG)
    expected = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"

    assert image(PNG) == MediaPart(modality="image", url=expected)
    assert image(path) == MediaPart(modality="image", url=expected, name="sky.jpg")
    named = image(str(path), name="other", hint="the sky", id="1", mime="image/x-own")
    assert (named.name, named.prompt_hint, named.id, named.mime) == ("other", "the sky", "1", "image/x-own")
    assert named.url == expected.replace("image/png", "image/x-own")


@pytest.mark.parametrize(
    ("make", "data", "mime"),
    [
        (audio, b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
        (video, b"\0\0\0\x18ftypmp42", "video/mp4"),
        (document, b"%PDF-1.7", "application/pdf"),
    ],
)
def test_every_modality_has_its_constructor(make: Any, data: bytes, mime: str) -> None:
    """PJ-15."""
    part = make(data)

    assert part.modality == make.__name__
    assert part.url.startswith(f"data:{mime};base64,")


def test_media_that_cannot_be_read_or_told_is_refused_in_one_line(tmp_path: Path) -> None:
    """A missing file, a file beyond the cap, an unknown type, a forbidden type, no source at all."""
    large, page = tmp_path / "large.png", tmp_path / "page.html"
    large.write_bytes(PNG)
    page.write_text("<html>")
    pipe, empty = tmp_path / "pipe.png", tmp_path / "empty.png"
    os.mkfifo(pipe)
    empty.touch()
    for act, words in [
        (
            lambda: image("nowhere.png"),
            "'nowhere.png' cannot be read: No such file or directory; give a URL, a path or bytes",
        ),
        (lambda: image(tmp_path), "cannot be read: it is no regular file; give a URL, a path or bytes"),
        (lambda: image("/dev/zero"), "'/dev/zero' cannot be read: it is no regular file"),
        (lambda: image(pipe), "it is no regular file"),
        (lambda: image(empty), r"empty\.png' holds no bytes; give one that does"),
        (lambda: image(b"", mime="image/png"), "a value of 0 bytes holds no bytes"),
        (lambda: image("data:image/png;base64,"), "holds no bytes"),
        (lambda: image("data:image/png;base64,%20%3d"), "holds no bytes"),
        (lambda: image("data:image/png;base64,===="), "holds no bytes"),
        (lambda: image("https://example.org:99999/a.png"), "is no URL: .*invalid port number"),
        (lambda: image("https://a b.org/a.png"), "percent-encode or remove it"),
        (lambda: image("http://1.2.3.4.5/a.png"), "is no URL: .*invalid IPv4 address"),
        (lambda: image("a\0b"), "cannot be read"),
        (lambda: image(large, cap=10), r"large\.png' has more bytes than the cap of 10: upload it, or pass cap="),
        (lambda: image(PNG, cap=10), "has more bytes than the cap of 10"),
        (lambda: image(b"??"), "type of a value of 2 bytes cannot be told; pass mime=, for example 'image/png'"),
        (lambda: document(page), "text/html, which no media part may carry"),
        (lambda: image("javascript:alert(1)"), "cannot be read"),
        (lambda: image("https://"), "names no host"),
        (lambda: image(None), "the image is of type NoneType; give a URL, a path or bytes"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(MediaRefused, match=words) as caught:
            act()
        assert "\n" not in str(caught.value)


def test_of_a_file_that_grows_one_byte_beyond_the_cap_is_read(tmp_path: Path) -> None:
    """What a file's size was said to be is no bound on what it gives: /proc/self/maps says 0 bytes."""
    taken = document("/proc/self/maps", mime="text/plain", cap=100_000_000)

    assert taken.url.startswith("data:text/plain;base64,")
    with pytest.raises(MediaRefused, match="more bytes than the cap of 10"):
        document("/proc/self/maps", mime="text/plain", cap=10)


def test_parameters_of_a_type_may_be_written_with_spaces() -> None:
    """As RFC 9110 has them in a header, and a data URL has not."""
    assert audio(b"abcd", mime="audio/L16; codec=pcm").url == "data:audio/L16;codec=pcm;base64,YWJjZA=="


@pytest.mark.parametrize("mime", ["image/*", "photo", "", "a photo/graph"])
def test_a_hint_that_is_no_whole_type_leaves_the_type_to_the_bytes(mime: str) -> None:
    """PJ-17: free text."""
    assert image(PNG, mime=mime).url.startswith("data:image/png;base64,")


def test_a_call_takes_text_one_message_or_several() -> None:
    """The public surface: `str | Message | Sequence[Message]`."""
    one, two = user("a"), assistant("b")

    assert as_messages(one) == [one]
    assert as_messages([one, two]) == [one, two]
    assert as_messages((one,)) == [one]
    assert [message.text for message in as_messages("hi")] == ["hi"]
    assert as_messages("hi")[0].policy == "user"
    assert as_messages([]) == []


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
    """Misnamed is a TypeError: the mistake is in the program."""
    with pytest.raises(Misnamed, match=words) as caught:
        as_messages(given)

    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, TypeError)


def test_as_messages_gives_a_list_of_its_own() -> None:
    """Whoever appends to it changes nothing of the caller's."""
    given: list[Message] = [user("a")]

    assert as_messages(given) is not given
