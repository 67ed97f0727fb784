"""Skips bodies in which an object, at any depth, has the key __proto__: JSON Schema cannot express that rule."""

import ast
import json
import threading

import schemathesis

# Two threads that parse Python at once fail in Python 3.11 ("AST constructor recursion depth mismatch").
parse_python = ast.parse
one_parses = threading.Lock()


def parse_alone(*args, **kwargs):
    with one_parses:
        return parse_python(*args, **kwargs)


ast.parse = parse_alone


@schemathesis.hook
def filter_case(context, case):
    try:
        return '"__proto__"' not in json.dumps(case.body)
    except TypeError:
        return True
