"""An option keeps its function's own signature in the eyes of a type checker; checked by mypy, never run."""

from typing import assert_type

from sabir.options.option import Option, option


@option
def weather(city: str, days: int = 1) -> str:
    """Current weather in a city."""
    return city * days


@option(name="find", description="Finds.")
async def search(query: str) -> list[str]:
    """Search."""
    return [query]


class Shop:
    """Something with a method."""

    def price(self, item: str) -> float:
        """The price of an item."""
        return float(len(item))


async def check() -> None:
    """An asynchronous one is still awaited."""
    assert_type(await search("rain"), list[str])


assert_type(weather("Oslo"), str)
assert_type(weather("Oslo", days=2), str)
assert_type(option(Shop().price)("tea"), float)
assert_type(Option.from_function(Shop().price)("tea"), float)
assert_type(weather.name, str)
assert_type(Option.all_of([weather, search, Shop().price]), tuple[Option, ...])

weather(3)  # type: ignore[arg-type]
weather(town="Oslo")  # type: ignore[call-arg]
