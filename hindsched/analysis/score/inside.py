"""What runs in the sandbox before the candidate and, where that is a class, around it.

``python inside.py confine SETTINGS COMMAND...`` takes limits on itself and becomes the command;
``python inside.py serve LIBRARY FILE CLASS`` is the other end of `hindsched.online.external`.
Standard library only, but for a class.
"""

import ctypes
import json
import os
import platform
import resource
import struct
import sys
from typing import Any, get_args

# System calls by name with their numbers on x86-64 and on ARM: memory and words that no limit
# counts, worlds of its own, ways around this table; what says or sets whether a file that other
# runs read too is in memory.
DENIED = {
    "memfd_create": (319, 279), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "unshare": (272, 97), "clone3": (435, 435), "io_uring_setup": (425, 425),
    "fadvise64": (221, 223), "preadv2": (327, 286), "mincore": (27, 232), "cachestat": (451, 451),
    "readahead": (187, 213),
}  # fmt: skip
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
LOAD, EQUAL, ABOVE, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
DENIED_IF = [((56, 220), ANY_BIT, 0x7E020080), ((157, 167), EQUAL, 1)]
"""Calls that are refused by their first argument: ``clone`` with namespaces of its own, ``prctl``
that would let a process outlive its parent."""
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
NO_SUCH_CALL = 38
X32 = 0x40000000
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 1, 38, 22, 2


def confine(settings_text: str, *command: str) -> None:
    """Limit this process, forget who started it, become the command; nothing of it can be undone.

    `Contained.launch` writes the settings.
    """
    settings = json.loads(settings_text)
    for name, most in settings["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    if settings["user"]:
        os.setgroups([])
        os.setresgid(*[settings["user"]] * 3)
        os.setresuid(*[settings["user"]] * 3)
    _refuse_calls()
    environment = {name: os.environ[name] for name in settings["keep"] if name in os.environ}
    os.execve(command[0], command, settings["environment"] | environment)


def _refuse_calls() -> None:
    """Let the kernel refuse `DENIED` from now on, in this process and all that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if platform.machine() not in MACHINES:
        return
    column, machine = MACHINES[platform.machine()]
    refuse = (RETURN, 0, 0, FAIL | NO_SUCH_CALL)
    code = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, machine), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    code += [(ABOVE, 0, 1, X32), (RETURN, 0, 0, KILL)]
    for numbers in DENIED.values():
        code += [(EQUAL, 0, 1, numbers[column]), refuse]
    for numbers, test, value in DENIED_IF:
        first = [(LOAD, 0, 0, 0), (EQUAL, 0, 3, numbers[column])]
        code += [*first, (LOAD, 0, 0, 16), (test, 0, 1, value), refuse]
    code.append((RETURN, 0, 0, ALLOW))
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(packed))
    if libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.c_char_p(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def serve(library: str, file: str, name: str) -> None:
    """Let a class of a file answer every message until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the class prints is no answer
    sys.path.insert(0, library)
    from hindsched.instances.io import parse_instance
    from hindsched.online.protocol import Environment
    from hindsched.online.registry import load_class

    algorithm, job_class = load_class(file, name)(), None
    for line in sys.stdin:
        message = json.loads(line)
        reply: dict[str, Any] = {"type": "hello", "protocol": 1}
        if message["type"] == "start":
            cluster = parse_instance(message["cluster"])
            job_class = get_args(type(cluster).model_fields["jobs"].annotation)[0]
            facts = (message[name] for name in ("estimates", "seed", "formulation"))
            algorithm.start(Environment(cluster, *facts))
            reply = {"type": "ready"}
        elif message["type"] == "step":
            reply = _step(algorithm, job_class, message)
        answers.write(json.dumps(reply, default=_builtin_value) + "\n")
        answers.flush()


def _builtin_value(value: Any) -> Any:
    """A number of numpy's as Python's, any collection as a list."""
    return value.item() if hasattr(value, "item") else list(value)


def _step(algorithm: Any, job_class: Any, message: dict[str, Any]) -> dict[str, Any]:
    slot, events = message["slot"], [(event.pop("type"), event) for event in message["events"]]
    ended = tuple(event["job"] for kind, event in events if kind == "job-completed")
    if ended:
        algorithm.completed(slot, ended)
    news = {event.pop("job"): event for kind, event in events if kind == "job-news"}
    if news:
        algorithm.told(slot, news)
    arrivals = tuple(_record(job_class, job) for job in message["arrivals"])
    decision = vars(algorithm.step(slot, arrivals))
    return {"type": "decision", "slot": slot, **decision, "wake": algorithm.wake_up()}


def _record(job_class: Any, fields: dict[str, Any]) -> Any:
    """A job as far as it is told: each field is read, and no rule asked of the whole."""
    from pydantic import TypeAdapter

    kinds = {name: job_class.model_fields[name].rebuild_annotation() for name in fields}
    read = {name: TypeAdapter(kinds[name]).validate_python(fields[name]) for name in fields}
    return job_class.model_construct(**read)


if __name__ == "__main__":
    serve(*sys.argv[2:]) if sys.argv[1] == "serve" else confine(*sys.argv[2:])
