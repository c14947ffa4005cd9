"""Provider → its package in this project, for the error about a provider that is not installed.

The entry points of the group `sabir.hints` name one of these for each provider of the other packages.
"""

_WORDS = "it comes with {0}: pip install {0}".format

ANTHROPIC = _WORDS("sabir-anthropic")
ECHO = _WORDS("sabir-echo")
GOOGLE = _WORDS("sabir-google")
LOCAL = f"{_WORDS('sabir-local')}, then bring its model: sabir local fetch"
OPENAI = _WORDS("sabir-openai")
