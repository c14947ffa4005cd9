"""`Reply.parse`: the text of a reply as another type, or as it is."""

import pytest
import sabir
from sabir_testing.scripted import ScriptedAdapter

QUOTED = '"Hi" is 2 letters.'


def test_a_text_is_returned_as_it_is() -> None:
    llm = ScriptedAdapter(QUOTED, sabir.RefusalPart(text="No."))

    assert llm.complete_sync("Hello").parse(str) == QUOTED
    with pytest.raises(sabir.errors.OutputRefused, match=r"the model refused: No\."):
        llm.complete_sync("Hello").parse(str)
