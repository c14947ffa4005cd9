"""Names of journals and conversations: texts that every database can store.

"trip" · "any 'name' 😀" ──▶ stored            "" · 7 · "a\\0b" · 5,000 letters ──▶ StoreError
"""

from sabir.authoring import one_line

from sabir_session.errors import StoreError

LONGEST = 4000
"""The largest number of UTF-8 bytes in a name. An index of Postgres accepts about 2,700 bytes after compression, and
refuses more with an error that the store reports."""


def check_name(name: object) -> None:
    """Raise StoreError for a name that is not a text, is empty or too long, or has a character that is not allowed."""
    if isinstance(name, str):
        try:
            size = len(name.encode())
        except UnicodeEncodeError:  # half of a surrogate pair
            size = 0
        if 0 < size <= LONGEST and "\0" not in name:
            return
    name_text = one_line(repr(name), 60)
    expected = f"a text of at least one character, encodable as at most {LONGEST} bytes of UTF-8, without U+0000"
    raise StoreError(f"the name of a conversation or journal is {name_text}; expected {expected}")
