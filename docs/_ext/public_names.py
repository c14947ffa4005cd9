"""The public names of all packages, and the one place of the API pages where each object is documented."""

import functools
import importlib
import importlib.metadata

PACKAGES = [
    "sabir", "sabir.errors", "sabir.authoring", "sabir_session", "sabir_runtime", "sabir_runtime.durable",
    "sabir_runtime.distributed", "sabir_actors", "sabir_testing", "sabir_roles", "sabir_mcp", "sabir_media",
    "sabir_calls", "sabir_embeddings", "sabir_otel", "sabir_prices", "sabir_openai", "sabir_google",
]  # fmt: skip


def unlisted() -> set[str]:
    """The packages of the project with public names that PACKAGES lacks, so that their names are on no page."""
    installed = {each.name.replace("-", "_") for each in importlib.metadata.distributions()}
    others = {name for name in installed - set(PACKAGES) if name.startswith("sabir_")}
    return {name for name in others if getattr(importlib.import_module(name), "__all__", ())}


@functools.cache
def homes() -> dict[str, dict[str, str]]:
    """Package → its public names → where each is documented: in the first package that exports the object."""
    homes: dict[str, dict[str, str]] = {}
    first: dict[int, str] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        values = {name: getattr(module, name) for name in module.__all__}
        homes[package] = {name: first.setdefault(id(each), f"{package}.{name}") for name, each in values.items()}
    return homes


def home(name: str, package: str) -> str | None:
    """The full name of a public object, or None. The same package goes first, then the others in their order."""
    head, _, member = name.partition(".")
    if head in homes():  # `sabir.adapter`
        head, _, member = member.partition(".")
    for names in (homes().get(package, {}), *homes().values()):
        if head in names:
            return f"{names[head]}.{member}" if member else names[head]
    return None


def package_of(name: str) -> str:
    """`sabir_runtime.durable.DurableRunner.run` → `sabir_runtime.durable`."""
    return max((package for package in PACKAGES if name.startswith(f"{package}.")), key=len, default="sabir")
