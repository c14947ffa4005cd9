"""Every package can be imported by a strictly typed program; checked by mypy, never run."""

from types import ModuleType

import sabir
import sabir_cli
import sabir_echo
import sabir_local
import sabir_media
import sabir_openai

PACKAGES: tuple[ModuleType, ...] = (sabir, sabir_cli, sabir_echo, sabir_local, sabir_media, sabir_openai)
