"""Record every exchange from the embedded server, through the official SDK's client: `nox -s record`."""

import sys
from datetime import UTC, datetime
from importlib.metadata import version

import sabir
from sabir_local.server import LocalServer
from sabir_local.weights import find_weights

from tests.recorded.cases import Outcome, cassette_path, exchanges
from tests.recorded.recorder import check_played, recorder


def provenance(weights: str) -> dict[str, str]:
    """Which server answered, and when."""
    return {
        "server": "xllamacpp (llama.cpp), embedded; not a vendor's own service",
        "version": version("xllamacpp"),
        "weights": weights,
        "date": datetime.now(UTC).date().isoformat(),
        "client": f"openai {version('openai')}",
    }


def main(wanted: list[str]) -> int:
    """Record all exchanges, or those whose names contain one of the words given; 1 if one is not as expected."""
    weights = find_weights(None)
    server = LocalServer(weights)
    vcr = recorder("all", provenance(weights.name))
    failures = 0
    for dialect, name, case, ask in exchanges():
        if wanted and not any(word in f"{dialect}/{name}" for word in wanted):
            continue
        path = cassette_path(dialect, name)
        path.unlink(missing_ok=True)
        key = "wrong" if case.wrong_key else server.api_key
        with (
            vcr.use_cassette(str(path)) as cassette,
            sabir.adapter(f"{dialect}:smollm2", base_url=f"{server.address}/v1", api_key=key) as adapter,
        ):
            outcome = ask(adapter, case)
            cassette.play_counts.update({index: 1 for index in range(len(cassette))})
            check_played(cassette)
        is_expected = type(outcome) is (case.expects or sabir.Reply)
        failures += not is_expected
        print(f"{'ok ' if is_expected else 'BAD'} {dialect}/{name}: {_shown(outcome)}")
    server.stop()
    return 1 if failures else 0


def _shown(outcome: Outcome) -> str:
    if isinstance(outcome, sabir.Reply):
        calls = [call.call and (call.call.option_name, dict(call.call.arguments)) for call in outcome.option_calls]
        return f"{outcome.finish_reason} {outcome.text!r} {calls or ''}"[:150]
    return f"{type(outcome).__name__}: {outcome}"[:150]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
