"""Reads imports without running anything, and says which of them point the wrong way."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent

# Who may know whom: a layer sees itself and what stands after it.
LAYERS = ["console", "recovery", "runs"]
# What the server shares with every agent; these modules are pure.
SHARED = {
    "steadyhand.conditions",
    "steadyhand.connector",
    "steadyhand.contract",
    "steadyhand.identity",
    "steadyhand.judging",
    "steadyhand.manifest",
    "steadyhand.observe",
    "steadyhand.paths",
    "steadyhand.promises",
    "steadyhand.templates",
}
OUTSIDERS = {"tests", "sandbox", "demo", "benchmarks"}
# What the shared modules stand on; as pure as they are.
PURE = SHARED | {"steadyhand.errors", "steadyhand.proof", "steadyhand.shapes"}
PROJECT = {*LAYERS, *OUTSIDERS, "steadyhand"}
ONLY_HERE = {
    "celery": {"console.celery", "recovery.tasks"},
    "kombu": {"console.celery", "recovery.tasks"},
    "guardian": {"recovery.permissions"},
}
# What keeps secrets and unstorable characters out of the record; as pure as the rules.
PLAIN_FACTS = {"runs.redact"}
# Standard modules through which a pure rule could reach the world or its clock.
WORLDLY = {
    "socket",
    "subprocess",
    "urllib",
    "http",
    "os",
    "pathlib",
    "time",
    "random",
    "secrets",
    "threading",
    "asyncio",
}
# Libraries that only shape values.
VALUES = {"pydantic", "pydantic_core", "typing_extensions"}
SOURCES = {
    "console": "console",
    "recovery": "recovery",
    "runs": "runs",
    "sandbox": "sandbox",
    "steadyhand": "sdk/steadyhand",
}


def all_violations(base: Path = BASE) -> list[str]:
    """One sentence per wrong import in the tree at `base`."""
    return [found for name, path in modules(base) for found in violations(name, path.read_text(), path=path)]


def modules(base: Path) -> Iterator[tuple[str, Path]]:
    """Every module of the product as (dotted name, file)."""
    for package, folder in SOURCES.items():
        for path in sorted((base / folder).rglob("*.py")):
            parts = [package, *path.relative_to(base / folder).with_suffix("").parts]
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def violations(module: str, source: str, *, path: Path | None = None) -> list[str]:
    """The wrong imports of one module, as sentences; `path` tells a package from a module."""
    is_package = path is not None and path.name == "__init__.py"
    return [
        f"{module} imports {target}: {reason}"
        for target in sorted(set(imports(module, source, is_package=is_package)))
        for reason in [_reason(module, target)]
        if reason
    ]


def imports(module: str, source: str, *, is_package: bool = False) -> Iterator[str]:
    """Full names of what `source` imports, wherever in the file, relative ones worked out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node, is_package=is_package)
            # `from steadyhand import contract` names a module; `from x import Name` is harmlessly longer.
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _origin(module: str, node: ast.ImportFrom, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".") if is_package else module.split(".")[:-1]
    parts = package[: len(package) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def _reason(module: str, target: str) -> str:
    here, there = module.split(".")[0], target.split(".")[0]
    if there in ONLY_HERE and module not in ONLY_HERE[there]:
        return f"{there} belongs to {' and '.join(sorted(ONLY_HERE[there]))} alone"
    if here == "steadyhand":
        return _sdk_reason(module, target, there)
    if here == "sandbox":
        return "the outside world knows nothing of the product" if there in PROJECT - {"sandbox"} else ""
    if there in OUTSIDERS:
        return f"the product does not lean on {there}"
    if there in LAYERS and LAYERS.index(there) < LAYERS.index(here):
        return f"{here} may not know {there}"
    if there == "steadyhand" and not _within(target, SHARED):
        return "the server shares only the pure modules of the SDK"
    if module.startswith("recovery.rules"):
        return _rule_reason(target, there)
    return ""


def _sdk_reason(module: str, target: str, there: str) -> str:
    if there == "django" or there in PROJECT - {"steadyhand"}:
        return "an agent has no server beside it"
    if module not in PURE or there in VALUES or _within(target, PURE):
        return ""
    if there in sys.stdlib_module_names and there not in WORLDLY:
        return ""
    return "a module shared with the server is pure"


def _rule_reason(target: str, there: str) -> str:
    if there in WORLDLY:
        return "a rule takes plain values and touches nothing"
    allowed = there in sys.stdlib_module_names or there in VALUES
    if allowed or _within(target, SHARED | PLAIN_FACTS) or target.startswith("recovery.rules"):
        return ""
    return "a rule takes plain values and knows no framework"


def _within(target: str, names: set[str]) -> bool:
    return any(target == name or target.startswith(f"{name}.") for name in names)
