"""What a sender should do about each fault that a model found, in our words and without the sender's values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from console.api.parsing import BODY, Fault, shown

_TIME = "send a time with its offset from UTC, for example 2026-03-01T09:00:00Z"
_REMEDIES = {
    "missing": "add this field",
    "extra_forbidden": "remove this field: it is not known here",
    "string_type": "send text",
    "string_too_short": "send at least {min_length} characters",
    "string_too_long": "send at most {max_length} characters",
    "string_pattern_mismatch": "use the form {pattern}",
    "int_type": "send a whole number",
    "int_parsing": "send a whole number",
    "int_from_float": "send a whole number",
    "float_type": "send a number",
    "bool_type": "send true or false",
    "dict_type": "send an object",
    "model_type": "send an object",
    "model_attributes_type": "send an object",
    "list_type": "send a list",
    "too_short": "send at least {min_length} items",
    "too_long": "send at most {max_length} items",
    "greater_than": "send more than {gt}",
    "greater_than_equal": "send {ge} or more",
    "less_than": "send less than {lt}",
    "less_than_equal": "send {le} or less",
    "literal_error": "send {expected}",
    "uuid_type": "send the id as it was given to you",
    "uuid_parsing": "send the id as it was given to you",
    "timezone_aware": _TIME,
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
}
_KEY = "[key]"
# A sentence whose limits were lost on the way (the manifest's) says them in the library's words.
_CHOICE = re.compile(r"^Input should be (?=')")
_SUBJECT = re.compile(r"^(Input|String|List|Dictionary|Value) should ")
_LONGEST = 300


def faults(wrong: ValidationError, document: Any) -> list[Fault]:
    """Every fault in one list. `document` is what was validated; it tells fields from the names of alternatives."""
    found: list[Fault] = []
    for error in wrong.errors(include_url=False, include_input=False):
        location = error["loc"]
        path = list(_path(location, document))
        fault = Fault(".".join(shown(str(part)) for part in path) or BODY, remedy(error))
        if location[-1:] == (_KEY,):
            fault = Fault(fault.field, f"rename this field: {fault.remedy}")
        elif len(path) < len(location) and found and found[-1].field == fault.field:
            fault = Fault(fault.field, f"{found.pop().remedy}, or {fault.remedy}")
        found.append(fault)
    return found


def remedy(error: Mapping[str, Any]) -> str:
    """The sentence for one of pydantic's errors."""
    try:
        return _REMEDIES[error["type"]].format_map(error.get("ctx", {}))
    except KeyError:
        said = error["msg"].removeprefix("Value error, ")
        return shown(_SUBJECT.sub("must ", _CHOICE.sub("send ", said)), _LONGEST)


def _path(location: tuple[int | str, ...], document: Any) -> Iterator[int | str]:
    """The part of a location that names a field, there or not; what follows names an alternative that was tried."""
    here = document
    for part in location:
        if _holds(here, part):
            here = here[part]
        elif isinstance(here, dict) and str(part).isidentifier():
            here = None
        else:
            return
        yield part


def _holds(value: Any, part: int | str) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)
