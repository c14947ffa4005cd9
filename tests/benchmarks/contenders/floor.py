"""The floor of imports: what any library on pydantic and an HTTP client loads."""

from tests.benchmarks.work import Given

REQUIREMENTS = ("pydantic>=2.14", "orjson>=3", "httpx2>=2")

IMPORTED = "import pydantic\npydantic.BaseModel"
"""What any library on pydantic imports."""
TASKS: dict[str, object] = {}


def imports(given: Given) -> tuple[str, str]:
    """Nothing but these; then the least that is an answer."""
    url = given.url + "/v1/chat/completions"
    answer = f"assert httpx2.Client().post({url!r}, content=b'{{}}').status_code == 200"
    return "import pydantic, httpx2\npydantic.BaseModel", answer
