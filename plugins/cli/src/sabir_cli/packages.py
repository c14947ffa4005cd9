"""Remedies for providers that are not installed: the package of this project that contains the provider.

For each provider of another package, an entry point of the group `sabir.hints` names one of these texts. Core adds the
text to the error ProviderMissing.
"""

from importlib.metadata import PackageNotFoundError, version


def hint(package: str) -> str:
    """Return a text that tells how to install a package; "" if it is installed, because the error has another reason
    then.
    """
    try:
        version(package)
    except PackageNotFoundError:
        return f"install the package {package}: pip install {package}"
    return ""


ANTHROPIC = hint("sabir-anthropic")
ECHO = hint("sabir-echo")
GOOGLE = hint("sabir-google")
LOCAL = hint("sabir-local")
OPENAI = hint("sabir-openai")
