"""The remedy in the error for a provider that is not installed: the package of this project that contains it.

For each provider of the other packages, an entry point of the group `sabir.hints` names one of these texts.
"""

from importlib.metadata import PackageNotFoundError, version


def hint(package: str) -> str:
    """Return how to install a package, or "" if it is installed, because then the error has another reason."""
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
