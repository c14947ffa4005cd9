"""The engine's own source: every place that loads a stored value, and every place that connects to a database.

`row_guard` relies on three things: only DBOS's serialization module unpickles, rows reach it through the engine that
sabir passes to DBOS, and the column beside a value is called `serialization`. A new DBOS that adds a place fails here.
Read the new place, extend `test_foreign_rows` if it reads another column, and only then add it and allow the version.
"""

import ast
from collections import defaultdict
from functools import cache
from importlib.metadata import requires, version
from pathlib import Path

import dbos
from packaging.requirements import Requirement

DESERIALIZERS = {
    "deserialize", "deserialize_args", "deserialize_exception", "deserialize_value", "safe_deserialize",
    "safe_deserialize_schedule_context",
}  # fmt: skip
CONNECTS = {"create_engine", "create_async_engine", "raw_connection"}
FOREIGN = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}
NOT_RUN = ("cli/", "_templates/", "_docker_pg_helper")
"""Programs of the package that sabir does not run."""

LOADS = {
    "_client": {"DBOSClient.get_schedule", "DBOSClient.list_schedules"},
    "_core": {
        "_StreamReadCheckpoint.replay", "_check_recorded_enqueue", "execute_dequeued_workflow",
        "invoke_step.check_existing_result", "read_stream", "read_stream_async", "start_workflow",
        "start_workflow_async", "workflow_wrapper.wrapper._check_and_init",
    },
    "_datasource": {"_replay_recorded"},
    "_dbos": {"DBOS.asyncio_wait", "DBOS.get_schedule", "DBOS.list_schedules"},
    "_scheduler": {"_ScheduleThread.__init__", "backfill_schedule", "trigger_schedule"},
    "_serialization": {
        "deserialize_args", "deserialize_exception", "deserialize_value", "safe_deserialize",
        "safe_deserialize_schedule_context",
    },
    "_sys_db": {
        "SystemDatabase._raise_recorded_error", "SystemDatabase._record_operation_error",
        "SystemDatabase._replay_recorded", "SystemDatabase.check_workflow_result", "SystemDatabase.get_all_events",
        "SystemDatabase.get_event_consume", "SystemDatabase.get_event_setup", "SystemDatabase.list_workflow_steps",
        "SystemDatabase.list_workflows", "SystemDatabase.record_sleep", "SystemDatabase.recv_consume",
        "SystemDatabase.recv_setup",
    },
}  # fmt: skip
"""Where DBOS deserializes a value, or passes a deserializer on."""
ENGINES = {
    "_datasource_migration": {"migrate_datasource_database"},  # sabir has no data sources
    "_datasource_postgres": {"PostgresAsyncDatasource._create_engine", "PostgresSyncDatasource._create_engine"},
    "_datasource_sqlite": {"SqliteAsyncDatasource._create_engine", "SqliteSyncDatasource._create_engine"},
    "_dbos": {"DBOS.migrate"},  # grants permissions
    "_sys_db_postgres": {
        "PostgresSystemDatabase._create_engine",  # for migrations, and where no engine is passed
        "PostgresSystemDatabase._notification_listener",  # a connection of sabir's engine
        "PostgresSystemDatabase._reset_system_database", "PostgresSystemDatabase._truncate_system_database",
        "PostgresSystemDatabase.holds_sharded_schema",  # reads names of columns
        "PostgresSystemDatabase.run_migrations",
    },
    "_sys_db_sqlite": {"SQLiteSystemDatabase._create_engine", "SQLiteSystemDatabase._truncate_system_database"},
}  # fmt: skip
"""Where DBOS connects to a database, other than by the engine that it is given."""


@cache
def sources() -> tuple[tuple[str, ast.Module], ...]:
    """Return the modules of the installed DBOS by name."""
    root = Path(dbos.__file__).parent
    paths = {path.relative_to(root).with_suffix("").as_posix(): path for path in sorted(root.rglob("*.py"))}
    return tuple((name, ast.parse(path.read_text())) for name, path in paths.items() if not name.startswith(NOT_RUN))


def uses(names: set[str]) -> dict[str, set[str]]:
    """Return module → functions that mention one of these names other than to import or define it."""
    places = defaultdict[str, set[str]](set)

    def visit(node: ast.AST, module: str, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{function}.{child.name}".lstrip(".")
            name = getattr(child, "attr", None) or getattr(child, "id", None)
            if isinstance(child, ast.Attribute | ast.Name) and name in names:
                places[module].add(function)
            visit(child, module, inner)

    for module, tree in sources():
        visit(tree, module, "")
    return dict(places)


def test_the_engine_loads_values_only_in_known_places() -> None:
    assert uses(DESERIALIZERS) == LOADS


def test_the_engine_connects_only_in_known_places() -> None:
    assert uses(CONNECTS) == ENGINES


def test_only_the_serialization_module_can_unpickle() -> None:
    imports = {
        (module, alias.name)
        for module, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if alias.name in FOREIGN or getattr(node, "module", None) in FOREIGN
    }

    assert imports == {("_serialization", "pickle")}
    assert uses({"eval", "exec", "__import__"}) == {}


def test_the_column_of_serializations_is_read_under_its_name() -> None:
    """A label would hide it from the guard, which knows the column by its name in the result."""
    renamed = [
        ast.unparse(node)
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "label"
        if ast.unparse(node.func.value).endswith("serialization")
    ]
    texts = [
        node.value
        for module, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "migration" not in module
        if "select" in node.value.lower() and "serialization" in node.value.lower()
    ]

    assert (renamed, texts) == ([], [])


def test_no_later_version_of_the_engine_is_allowed() -> None:
    """A version is allowed after the tests above passed with it."""
    (engine,) = (Requirement(each) for each in requires("sabir-runtime") or () if each.startswith("dbos"))
    installed = version("dbos").split(".")

    assert engine.specifier.contains(version("dbos"))
    assert not engine.specifier.contains(f"{installed[0]}.{int(installed[1]) + 1}.0")
