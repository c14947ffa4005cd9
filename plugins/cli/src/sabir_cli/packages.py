"""Provider → its package in this project, for the error about a provider that is not installed.

The entry points of the group `sabir.hints` name one of these for each provider of the other packages.
"""

from importlib.metadata import PackageNotFoundError, version


def hint(package: str) -> str:
    """Return how to install a package; "" if it is installed, because then the error has another reason."""
    try:
        version(package)
    except PackageNotFoundError:
        return f"it comes with {package}: pip install {package}"
    return ""


ANTHROPIC = hint("sabir-anthropic")
ECHO = hint("sabir-echo")
GOOGLE = hint("sabir-google")
LOCAL = hint("sabir-local")
OPENAI = hint("sabir-openai")
